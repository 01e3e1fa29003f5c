import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - the field's own name

from skyfall_torch.ewc_fisher import (
    FisherDropout,
    clip_and_normalize,
    fisher_mode,
    loop_fisher,
    mean_squared_gradients,
)


@pytest.fixture(autouse=True)
def double_precision():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    yield
    torch.set_default_dtype(before)


class TiedLanguageModel(nn.Module):
    """Embedding, two normalisations and attention-free mixing; the output layer shares the embedding."""

    def __init__(self, vocabulary=11, width=6):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.norm = nn.LayerNorm(width)
        self.mix = nn.Linear(width, width)
        self.scale = nn.RMSNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids):
        hidden = self.embed(ids).cumsum(1)
        hidden = hidden + torch.tanh(self.mix(self.norm(hidden)))
        return self.head(self.scale(hidden)).log_softmax(-1)


def language_log_likelihood(model, ids):
    def log_likelihood(indices):
        batch = ids[list(indices)]
        return model(batch[:, :-1]).gather(-1, batch[:, 1:, None]).sum((1, 2))

    return log_likelihood


def slow_oracle(model, ids, counts):
    """`torch.func` per-sample gradients, squared and averaged."""
    weights = dict(model.named_parameters())

    def one(values, row):
        logits = torch.func.functional_call(model, values, (row[None, :-1],))
        return logits.gather(-1, row[None, 1:, None]).sum()

    gradients = torch.func.vmap(torch.func.grad(one), (None, 0))(weights, ids)
    share = torch.tensor(counts, dtype=torch.float64) / sum(counts)
    return [torch.einsum("b,b...->...", share, gradients[name] ** 2) for name in weights]


@pytest.fixture
def language():
    model = TiedLanguageModel()
    ids = torch.randint(0, 11, (9, 7))
    return model, ids, language_log_likelihood(model, ids)


def test_batched_fisher_equals_per_sample_autodiff_and_the_loop(language):
    model, ids, log_likelihood = language
    parameters, counts = list(model.parameters()), [1] * 9
    batched = mean_squared_gradients(parameters, [model], log_likelihood, counts)
    oracle = slow_oracle(model, ids, counts)
    loop = loop_fisher(parameters, log_likelihood, counts)
    for mine, theirs, slow in zip(batched, oracle, loop, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(mine, slow, rtol=1e-9, atol=1e-9)
        assert mine.any()


def test_the_batched_way_is_taken_for_this_model(language):
    model, _, log_likelihood = language
    calls = []

    def counting(indices):
        calls.append(len(indices))
        return log_likelihood(indices)

    mean_squared_gradients(list(model.parameters()), [model], counting, [1] * 9)
    assert calls == [9]


def test_chunks_change_nothing(language, monkeypatch):
    model, _, log_likelihood = language
    parameters = list(model.parameters())
    whole = mean_squared_gradients(parameters, [model], log_likelihood, [1] * 9)
    monkeypatch.setattr("skyfall_torch.ewc_fisher.MAX_CHUNK", 4)
    chunked = mean_squared_gradients(parameters, [model], log_likelihood, [1] * 9)
    for one, other in zip(whole, chunked, strict=True):
        torch.testing.assert_close(one, other)


def test_a_sample_drawn_twice_counts_twice(language):
    model, ids, log_likelihood = language
    parameters = list(model.parameters())
    weighted = mean_squared_gradients(parameters, [model], log_likelihood, [2, 1, 0, 0, 0, 0, 0, 0, 0])
    repeated = ids[[0, 0, 1]]
    spelled_out = loop_fisher(parameters, language_log_likelihood(model, repeated), [1, 1, 1])
    for one, other in zip(weighted, spelled_out, strict=True):
        torch.testing.assert_close(one, other)


class FlattensBatch(nn.Module):
    """Merges samples and positions before its layer, so no batch dimension reaches it."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 4)

    def forward(self, x):
        return self.layer(x.reshape(-1, 3)).view(*x.shape[:-1], 4)


class OwnsParameterDirectly(nn.Module):
    """Uses a parameter of its own besides a child, several positional inputs."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 4)
        self.gain = nn.Parameter(torch.randn(4))

    def forward(self, x):
        return F.gelu(self.layer(x)) * self.gain


@pytest.mark.parametrize("build", [FlattensBatch, OwnsParameterDirectly])
def test_models_of_unusual_shape_give_the_same_fisher(build):
    model, x = build(), torch.randn(5, 2, 3)

    def log_likelihood(indices):
        return F.logsigmoid(model(x[list(indices)])).sum((1, 2))

    parameters = list(model.parameters())
    batched = mean_squared_gradients(parameters, [model], log_likelihood, [1, 2, 1, 1, 1])
    slow = loop_fisher(parameters, log_likelihood, [1, 2, 1, 1, 1])
    for one, other in zip(batched, slow, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


def test_a_parameter_used_outside_its_module_is_noticed_and_looped_over():
    model, x = nn.Linear(3, 3, bias=False), torch.randn(4, 3)

    def log_likelihood(indices):
        return (model(x[list(indices)]) @ model.weight.T).sin().sum(1)

    (batched,) = mean_squared_gradients([model.weight], [model], log_likelihood, [1] * 4)
    (slow,) = loop_fisher([model.weight], log_likelihood, [1] * 4)
    torch.testing.assert_close(batched, slow, rtol=1e-9, atol=1e-9)


def test_a_parameter_without_influence_has_no_information():
    used, unused = nn.Linear(3, 1), nn.Linear(3, 1)
    x = torch.randn(4, 3)
    parameters = [*used.parameters(), *unused.parameters()]
    fisher = mean_squared_gradients(parameters, [used, unused], lambda i: used(x[list(i)]).sum(1), [1] * 4)
    assert [bool(f.any()) for f in fisher] == [True, True, False, False]


def test_clip_bounds_and_normalize_scales_to_one_by_hand():
    clipped = clip_and_normalize(torch.tensor([0.0, 1.0, 4.0, 100.0]), 8.0)
    assert clipped.tolist() == [0.0, 0.125, 0.5, 1.0]
    assert clip_and_normalize(torch.zeros(3), 8.0).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(("dropout", "root_trains"), [("disabled", False), ("reference", True)])
def test_fisher_mode_sets_the_documented_modes_and_restores_each(dropout, root_trains):
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5), nn.Sequential(nn.Linear(2, 2)))
    model.train()
    model[2].eval()
    with fisher_mode([model], FisherDropout(dropout)):
        assert [model.training, model[1].training, model[2].training] == [root_trains, False, root_trains]
    assert [model.training, model[1].training, model[2].training] == [True, True, False]
