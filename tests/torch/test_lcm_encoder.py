import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file

from skyfall_core.errors import CheckpointError
from skyfall_torch.lcm_encoder import (
    ContextTable,
    EncoderConfig,
    RegimeContextEncoder,
    consistency_loss,
    context_windows,
)
from skyfall_torch.lcm_warmup_file import load_encoder_weights, read_warmup, save_warmup

SMALL = {"context_steps": 3, "latent_dim": 5, "hidden_dim": 7, "state_dim": 300}


@pytest.fixture
def encoder():
    torch.manual_seed(0)
    return RegimeContextEncoder(**SMALL)


def test_default_input_is_the_references_width_and_only_columns_that_can_see_are_trained():
    encoder = RegimeContextEncoder()
    assert encoder(torch.zeros(1, 8, 4097))[1].shape == (1, 6)
    assert encoder.input.weight.shape == (256, 257)
    assert encoder.silent_columns.shape == (256, 3840)


def test_full_width_windows_are_projected_by_the_whole_first_layer(encoder):
    window = torch.randn(2, 3, 301)
    weight = torch.cat(
        [encoder.input.weight[:, :256], encoder.silent_columns, encoder.input.weight[:, 256:]], 1
    )
    expected = encoder._encode(window @ weight.T + encoder.input.bias)
    for mine, slow in zip(encoder(window), expected, strict=True):
        torch.testing.assert_close(mine, slow)


def test_latent_has_unit_length_and_one_logit_a_regime(encoder):
    latents, logits = encoder(torch.randn(4, 3, 301))
    torch.testing.assert_close(latents.norm(dim=1), torch.ones(4))
    assert logits.shape == (4, 6)


def full_windows(features, rewards, windows, state_dim):
    """Slow oracle: every window spelled out at full width."""
    table = torch.zeros(len(windows), windows.shape[1], state_dim + 1)
    for i, window in enumerate(windows):
        for j, row in enumerate(window):
            if row >= 0:
                table[i, j, : features.shape[1]] = features[row]
                table[i, j, -1] = rewards[row]
    return table


def test_table_of_windows_encodes_like_every_window_spelled_out(encoder):
    features = torch.randint(0, 2, (9, 4)).float()[:, :2].repeat(1, 128)
    rewards = torch.tensor([0.0, 1.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0])
    windows = context_windows([4, 5], 3)
    table = ContextTable.build(features, rewards, windows)
    outputs = encoder.encode(table)
    spelled = encoder(full_windows(features, rewards, windows, 300))
    for mine, slow in zip(outputs, spelled, strict=True):
        torch.testing.assert_close(mine, slow)
    gradients = [
        torch.autograd.grad((z * torch.arange(5.0)).sum() + (r**2).sum(), list(encoder.parameters()))
        for z, r in (outputs, spelled)
    ]
    for mine, slow in zip(*gradients, strict=True):
        torch.testing.assert_close(mine, slow, rtol=1e-4, atol=1e-5)


def test_equal_windows_are_held_once():
    table = ContextTable.build(torch.ones(50, 256), torch.zeros(50), context_windows([50], 4))
    assert table.steps.shape == (1, 257)
    assert len(table.distinct) == 4


def test_windows_are_left_padded_and_stop_at_the_stretch():
    assert context_windows([2, 3], 3).tolist() == [
        [-1, -1, 0],
        [-1, 0, 1],
        [-1, -1, 2],
        [-1, 2, 3],
        [2, 3, 4],
    ]


def test_consistency_is_one_minus_cosine_not_squared_by_hand():
    latents = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, -1.0], [0.6, 0.8]])
    # inside [0, 1]: cos 0; inside [2, 3]: cos -0.8; the pair (1, 2) crosses episodes
    assert consistency_loss(latents, [2, 2]).item() == pytest.approx((1.0 + 1.8) / 2)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=6))
def test_consistency_equals_a_slow_loop(lengths):
    latents = torch.randn(sum(lengths), 3, generator=torch.Generator().manual_seed(sum(lengths)))
    terms, start = [], 0
    for length in lengths:
        for t in range(start, start + length - 1):
            a, b = latents[t], latents[t + 1]
            terms.append(1 - (a @ b) / (a.norm() * b.norm()))
        start += length
    expected = sum(terms) / len(terms) if terms else torch.tensor(0.0)
    torch.testing.assert_close(consistency_loss(latents, lengths), expected)


def test_episodes_of_one_step_give_a_zero_that_can_be_differentiated():
    latents = torch.randn(3, 2, requires_grad=True)
    loss = consistency_loss(latents, [1, 1, 1])
    loss.backward()
    assert loss.item() == 0.0
    assert not latents.grad.any()


def test_consistency_lengths_must_add_up():
    with pytest.raises(ValueError, match="add up to 5"):
        consistency_loss(torch.zeros(4, 2), [2, 3])


def test_gradient_of_consistency_reaches_the_encoder_and_not_the_regime_head(encoder):
    features = torch.eye(6, 256)
    table = ContextTable.build(features, torch.zeros(6), context_windows([6], 3))
    consistency_loss(encoder.encode(table)[0], [6]).backward()
    reached = {name for name, p in encoder.named_parameters() if p.grad is not None and p.grad.any()}
    assert reached >= {"input.weight", "lstm.weight_ih_l0", "latent.weight"}
    assert encoder.regime_head.weight.grad is None


def load(encoder, path):
    return load_encoder_weights(encoder, *read_warmup(path), str(path))


def test_a_saved_warmup_is_loaded_whole(encoder, tmp_path):
    save_warmup(encoder, tmp_path / "warm.safetensors")
    other = RegimeContextEncoder(**SMALL)
    report = load(other, tmp_path / "warm.safetensors")
    assert report.dropped == {}
    assert report.missing == ()
    for name, tensor in encoder.state_dict().items():
        assert torch.equal(other.state_dict()[name], tensor)


def test_a_head_for_other_regimes_is_dropped_and_said(tmp_path, encoder):
    save_warmup(RegimeContextEncoder(**SMALL, regimes=("a", "b", "c")), tmp_path / "three.safetensors")
    before = encoder.regime_head.weight.clone()
    report = load(encoder, tmp_path / "three.safetensors")
    assert set(report.dropped) == set(report.missing) == {"regime_head.weight", "regime_head.bias"}
    assert "shape (3, 5)" in report.dropped["regime_head.weight"]
    assert torch.equal(encoder.regime_head.weight, before)


def test_a_head_with_as_many_but_other_regimes_is_dropped_too(tmp_path, encoder):
    save_warmup(RegimeContextEncoder(**SMALL, regimes=tuple("abcdef")), tmp_path / "six.safetensors")
    report = load(encoder, tmp_path / "six.safetensors")
    assert set(report.dropped) == {"regime_head.weight", "regime_head.bias"}


def test_another_width_drops_the_columns_that_see_nothing(tmp_path, encoder):
    save_warmup(RegimeContextEncoder(**{**SMALL, "state_dim": 280}), tmp_path / "wide.safetensors")
    assert set(load(encoder, tmp_path / "wide.safetensors").dropped) == {"silent_columns"}


def test_a_plain_state_dictionary_loads_with_unknown_tensors_dropped(tmp_path, encoder):
    torch.save({**encoder.state_dict(), "extra": torch.zeros(1)}, tmp_path / "plain.pt")
    report = load(encoder, tmp_path / "plain.pt")
    assert report.dropped == {"extra": "the encoder has no such tensor"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"context_steps": 4}, "context_steps is 4 in the file and 3 here"),
        ({"hash_mode": "python"}, "hash_mode"),
    ],
)
def test_a_warmup_in_another_basis_is_refused(tmp_path, encoder, change, message):
    save_warmup(RegimeContextEncoder(**{**SMALL, **change}), tmp_path / "other.safetensors")
    with pytest.raises(CheckpointError, match=message):
        load(encoder, tmp_path / "other.safetensors")


def test_a_warmup_of_which_nothing_fits_is_refused(tmp_path, encoder):
    torch.save({"weights": torch.zeros(2)}, tmp_path / "alien.pt")
    with pytest.raises(CheckpointError, match="no tensor fits"):
        load(encoder, tmp_path / "alien.pt")


class RunsCode:
    def __reduce__(self):
        return print, ("this must never be printed",)


@pytest.mark.parametrize(
    "recorded", ["[1]", "null", '{"regimes": 3}', "{", "[" * 100_000], ids=lambda text: text[:6]
)
def test_a_file_that_describes_its_encoder_badly_is_refused(tmp_path, recorded):
    path = tmp_path / "odd.safetensors"
    save_file({"lstm.bias_hh_l0": torch.zeros(2)}, path, metadata={"skyfall_lcm": recorded})
    with pytest.raises(CheckpointError, match=r"odd\.safetensors") as refusal:
        read_warmup(path)
    assert refusal.value.__cause__ is None


@pytest.mark.parametrize(
    "weight", [torch.tensor([0.0, float("nan")]), torch.tensor([1, 2])], ids=["nan", "integers"]
)
def test_numbers_that_are_no_weights_are_refused(tmp_path, weight):
    save_file({"latent.bias": weight}, tmp_path / "odd.safetensors")
    with pytest.raises(CheckpointError, match=r"latent\.bias holds what is no weight"):
        read_warmup(tmp_path / "odd.safetensors")


@pytest.mark.parametrize("name", ["code.pt", "torn.safetensors", "torn.pt", "list.pt", "absent.pt"])
def test_unusable_files_are_refused_by_name(tmp_path, name, capsys):
    path = tmp_path / name
    if name == "code.pt":
        torch.save({"weights": RunsCode()}, path)
    elif name == "list.pt":
        torch.save([1, 2], path)
    elif name.startswith("torn"):
        path.write_bytes(pickle.dumps({"a": 1}, protocol=2)[:7])
    with pytest.raises(CheckpointError, match=name) as refusal:
        read_warmup(path)
    assert refusal.value.__cause__ is None  # nothing whose traceback would be shown
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ({"context_steps": 0}, "context_steps is 0"),
        ({"regimes": ()}, "regimes"),
        ({"regimes": ("a", "a")}, "once"),
    ],
)
def test_impossible_shapes_are_refused(shape, message):
    with pytest.raises(ValueError, match=message):
        EncoderConfig(**shape)
