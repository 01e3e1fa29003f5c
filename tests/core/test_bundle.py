"""Export bundles: what is exported acts the same elsewhere, and whatever was tampered with is refused."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyfall_core.base import RolloutWindow, Transition
from skyfall_core.bundle import export_bundle, load_bundle
from skyfall_core.bundle.contents import describe_files
from skyfall_core.bundle.manifest import MANIFEST_FILE, Manifest, encoded, read_manifest, sealed
from skyfall_core.config import ExperimentConfig
from skyfall_core.construction import build_algorithm, spaces_of
from skyfall_core.errors import BundleError, CheckpointError
from skyfall_core.protocols import SAVED

OBSERVATIONS = [np.array([x, -x, x / 10, -x / 5], np.float32) for x in np.linspace(-1.0, 1.0, 20)]


def experiment(name: str = "actor-critic", **algorithm: Any) -> ExperimentConfig:
    return ExperimentConfig.model_validate(
        {
            "environment": {"id": "CartPole-v1"},
            "algorithm": {"name": name, **algorithm},
            "rollout": {"total_steps": 100},
            "run": {"name": "exported", "seed": 3},
        }
    )


@pytest.fixture
def env() -> Iterator[gym.Env[Any, Any]]:
    with gym.make("CartPole-v1") as env:
        yield env


def trained(config: ExperimentConfig, env: Any) -> Any:
    """The document's algorithm after a window that taught it something."""
    algorithm = build_algorithm(config.algorithm, spaces_of(env))
    steps = [
        Transition(step, observation, step % 2, float(step), False, False, "a", False)
        for step, observation in enumerate(OBSERVATIONS)
    ]
    algorithm.update(RolloutWindow(steps))
    return algorithm


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle that no test changes."""
    config, env = experiment(), gym.make("CartPole-v1")
    run_dir = tmp_path_factory.mktemp("run")
    (run_dir / "environment.json").write_text('{"packages": {"numpy": "2"}}')
    (run_dir / "scorecard.json").write_text('{"metrics": {"reward": 1.5}}')
    folder = tmp_path_factory.mktemp("exported") / "bundle"
    return export_bundle(
        folder, config=config, env=env, algorithm=trained(config, env), run_dir=run_dir, steps=20
    )


@pytest.fixture
def copied(bundle: Path, tmp_path: Path) -> Path:
    return shutil.copytree(bundle, tmp_path / "copied")


def actions(policy: Any) -> list[Any]:
    return [policy.act(observation) for observation in OBSERVATIONS]


@pytest.mark.parametrize("name", ["actor-critic", "random", "frozen"])
def test_a_baseline_acts_on_from_a_bundle_as_it_would_have(name: str, env: Any, tmp_path: Path) -> None:
    config = experiment(name, kwargs={"seed": 5})
    algorithm = trained(config, env)
    actions(algorithm.policy)
    folder = export_bundle(tmp_path / "bundle", config=config, env=env, algorithm=algorithm)
    assert actions(load_bundle(folder)) == actions(algorithm.policy)


def test_a_bundle_tells_what_it_holds(bundle: Path) -> None:
    opened = load_bundle(bundle)
    assert opened.manifest.bundle_version == 1
    assert (opened.manifest.run_id, opened.manifest.algorithm_id) == ("exported", "actor-critic")
    assert opened.manifest.steps == 20
    assert opened.manifest.policy.class_name == "skyfall_core.baselines.linear:LinearSoftmaxPolicy"
    assert ExperimentConfig.model_validate(opened.config) == experiment()
    env = gym.make("CartPole-v1")
    assert opened.observation_space == env.observation_space
    assert opened.action_space == env.action_space
    assert opened.provenance == {"packages": {"numpy": "2"}}
    assert opened.scorecard == {"metrics": {"reward": 1.5}}
    assert {path.name for path in bundle.iterdir()} == {
        "config.yaml",
        "environment.json",
        "manifest.json",
        "scorecard.json",
        "spaces.json",
        "weights",
    }


def test_spaces_are_written_in_both_forms(bundle: Path) -> None:
    told = json.loads((bundle / "spaces.json").read_text())
    assert told["action_space"] == {
        "gymnasium": {"type": "Discrete", "dtype": "int64", "start": 0, "n": 2},
        "schema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "integer",
            "minimum": 0,
            "maximum": 1,
        },
    }


def test_one_world_of_several_gives_the_spaces(tmp_path: Path) -> None:
    several = gym.vector.SyncVectorEnv([lambda: gym.make("CartPole-v1")] * 2)
    assert spaces_of(several).action_space == gym.spaces.Discrete(2)
    several.close()


UNINSTALLED = """
import sys
from skyfall_core.bundle import load_bundle
bundle = load_bundle(sys.argv[1])
print([bundle.act([0.1, 0.2, 0.3, 0.4]) in (0, 1), bundle.config["environment"]["id"]])
print([name for name in ("gymnasium.envs.classic_control", "pygame", "torch") if name in sys.modules])
"""


def test_a_fresh_process_acts_without_the_environment_regime_and_reward_being_installed(
    bundle: Path, tmp_path: Path, env: Any
) -> None:
    config = experiment()
    absent = config.model_copy(
        update={
            "environment": config.environment.model_copy(update={"id": "somebodys-world"}),
            "regime": config.regime.model_copy(update={"provider": "somebodys-regime"}),
        }
    )
    folder = export_bundle(tmp_path / "bundle", config=absent, env=env, algorithm=trained(config, env))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", UNINSTALLED, folder],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines() == ["[True, 'somebodys-world']", "[]"], done.stderr


def test_an_algorithm_that_is_not_installed_is_named_when_the_policy_is_asked_for(
    env: Any, tmp_path: Path
) -> None:
    config = experiment()
    absent = config.model_copy(
        update={"algorithm": config.algorithm.model_copy(update={"name": "actor-critik"})}
    )
    folder = export_bundle(tmp_path / "bundle", config=absent, env=env, algorithm=trained(config, env))
    opened = load_bundle(folder)
    assert opened.manifest.run_id == "exported"
    with pytest.raises(BundleError, match="unknown algorithm 'actor-critik': did you mean 'actor-critic'"):
        opened.act(OBSERVATIONS[0])


# Changed, missing, too much


@settings(max_examples=150)
@given(st.data())
def test_any_flipped_bit_in_any_file_is_refused(bundle: Path, data: st.DataObject) -> None:
    names = sorted(path.relative_to(bundle) for path in bundle.rglob("*") if path.is_file())
    path = bundle / data.draw(st.sampled_from(names))
    before = path.read_bytes()
    place = data.draw(st.integers(0, len(before) - 1))
    changed = bytearray(before)
    changed[place] ^= 1 << data.draw(st.integers(0, 7))
    try:
        path.write_bytes(changed)
        with pytest.raises(BundleError, match=path.name):
            load_bundle(bundle)
    finally:
        path.write_bytes(before)


def test_every_flipped_byte_of_a_manifest_is_refused(copied: Path) -> None:
    path = copied / MANIFEST_FILE
    before = path.read_bytes()
    for place in range(len(before)):
        path.write_bytes(before[:place] + bytes([before[place] ^ 0x01]) + before[place + 1 :])
        with pytest.raises(BundleError, match=r"manifest.json"):
            load_bundle(copied)


@pytest.mark.parametrize("length", [0, 1, 100])
def test_a_manifest_cut_short_is_refused(copied: Path, length: int) -> None:
    path = copied / MANIFEST_FILE
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(BundleError, match=r"manifest.json: damaged"):
        load_bundle(copied)


@pytest.mark.parametrize("name", ["config.yaml", "spaces.json", "weights/baseline.npz"])
def test_a_missing_file_is_named(copied: Path, name: str) -> None:
    (copied / name).unlink()
    with pytest.raises(BundleError, match=f"{name}: missing"):
        load_bundle(copied)


@pytest.mark.parametrize("name", ["notes.txt", "weights/other.npz", "a/b/c"])
def test_a_file_too_much_is_named(copied: Path, name: str) -> None:
    (copied / name).parent.mkdir(parents=True, exist_ok=True)
    (copied / name).write_text("")
    with pytest.raises(BundleError, match=f"{name}: is in no manifest"):
        load_bundle(copied)


def test_what_is_no_bundle_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere", Path(__file__)):
        with pytest.raises(BundleError, match="no such file; give the folder"):
            load_bundle(path)


# Hostile


def rewritten(folder: Path, **changes: Any) -> None:
    """A manifest that is whole in itself and says something else."""
    manifest = msgspec.structs.replace(read_manifest(folder), **changes)
    (folder / MANIFEST_FILE).write_bytes(encoded(sealed(manifest)))


@pytest.mark.parametrize(
    "name",
    ["../stolen", "a/../../stolen", "/etc/hostname", "a//b", "./a", "a\\..\\b", "C:/a", "", "a/", "a\0b"],
)
def test_a_manifest_whose_paths_lead_out_is_refused(copied: Path, name: str) -> None:
    files = read_manifest(copied).files
    rewritten(copied, files={**files, name: files["config.yaml"]})
    with pytest.raises(BundleError, match="never lead out of the folder"):
        load_bundle(copied)


def test_weights_inside_that_lead_out_are_refused(copied: Path) -> None:
    weights = read_manifest(copied).weights
    rewritten(copied, weights=msgspec.structs.replace(weights, path="../elsewhere"))
    with pytest.raises(BundleError, match=r"'../elsewhere': a manifest's names"):
        load_bundle(copied)


def test_a_link_out_of_the_folder_is_refused(copied: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.yaml"
    (copied / "config.yaml").rename(outside)
    (copied / "config.yaml").symlink_to(outside)
    with pytest.raises(BundleError, match=r"config.yaml: is a link"):
        load_bundle(copied)


def test_a_folder_that_is_a_link_is_refused(copied: Path, tmp_path: Path) -> None:
    outside = tmp_path / "elsewhere"
    (copied / "weights").rename(outside)
    (copied / "weights").symlink_to(outside)
    with pytest.raises(BundleError, match=r"weights.*(missing|is in no manifest)"):
        load_bundle(copied)


def test_something_that_is_no_file_is_refused_without_being_opened(copied: Path) -> None:
    (copied / "config.yaml").unlink()
    os.mkfifo(copied / "config.yaml")  # opening it would wait for a writer
    with pytest.raises(BundleError, match=r"config.yaml: is no file"):
        load_bundle(copied)


def pickles() -> dict[str, bytes]:
    class Wrapped:
        def __reduce__(self) -> tuple[Any, ...]:
            return (print, ("run",))

    return {
        name: pickle.dumps({"weights": [1.0]})
        for name in ("weights.pkl", "model.PT", "pytorch_model.bin", "x.pickle", "x.pth", "innocent.txt")
    }


@pytest.mark.parametrize(("name", "content"), pickles().items(), ids=pickles())
def test_a_pickle_is_refused_even_if_the_manifest_vouches_for_it(
    copied: Path, name: str, content: bytes
) -> None:
    (copied / name).write_bytes(content)
    rewritten(copied, files=describe_files(copied, frozenset({MANIFEST_FILE})))
    with pytest.raises(BundleError, match=rf"{name}: .*pickle.*holds nothing that runs code"):
        load_bundle(copied)


def test_arrays_of_objects_and_archives_of_pickles_are_refused(copied: Path) -> None:
    hostile = copied / "weights/extra.npz"
    np.savez(hostile, fine=np.zeros(2), objects=np.array([{}], dtype=object))
    rewritten(copied, files=describe_files(copied, frozenset({MANIFEST_FILE})))
    with pytest.raises(BundleError, match=r"extra.npz: holds 'objects.npy', an array of objects"):
        load_bundle(copied)
    hostile.unlink()
    hostile = copied / "weights/extra.zip"
    with zipfile.ZipFile(hostile, "w") as archive:
        archive.writestr("archive/data.pkl", b"")
    rewritten(copied, files=describe_files(copied, frozenset({MANIFEST_FILE})))
    with pytest.raises(BundleError, match=r"extra.zip: holds the pickle 'archive/data.pkl'"):
        load_bundle(copied)


def test_a_newer_version_says_to_upgrade(copied: Path) -> None:
    rewritten(copied, bundle_version=2)
    with pytest.raises(BundleError, match="bundle_version is 2, this release reads up to 1; upgrade"):
        load_bundle(copied)


@pytest.mark.parametrize(
    "content", [b"[]", b"{}", b'{"bundle_version": "1"}', b'{"bundle_version": 1}', b"[" * 9999]
)
def test_what_is_no_manifest_is_refused(copied: Path, content: bytes) -> None:
    (copied / MANIFEST_FILE).write_bytes(content)
    with pytest.raises(BundleError, match=r"manifest.json: damaged"):
        load_bundle(copied)


# Writing


def listing(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_an_existing_bundle_is_replaced_only_on_request(copied: Path, env: Any) -> None:
    config = experiment("random")
    new: Mapping[str, Any] = {"config": config, "env": env, "algorithm": trained(config, env)}
    with pytest.raises(BundleError, match="already holds a bundle"):
        export_bundle(copied, **new)
    assert load_bundle(copied).manifest.algorithm_id == "actor-critic"
    export_bundle(copied, **new, overwrite=True)
    assert load_bundle(copied).manifest.algorithm_id == "random"
    assert listing(copied.parent) == ["copied"]


def test_anything_else_is_never_replaced(tmp_path: Path, env: Any) -> None:
    config = experiment("random")
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis/chapter1.tex").write_text("years of work")
    with pytest.raises(BundleError, match="no bundle and is left alone"):
        export_bundle(
            tmp_path / "thesis", config=config, env=env, algorithm=trained(config, env), overwrite=True
        )
    assert (tmp_path / "thesis/chapter1.tex").read_text() == "years of work"


class Fails:
    """Saves half and then fails."""

    policy = SimpleNamespace(act=lambda observation: 0)

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def save_checkpoint(self, path: Path) -> None:
        path.write_text("half")
        raise self.error

    def load_checkpoint(self, path: Path) -> None: ...


@pytest.mark.parametrize(
    "error", [RuntimeError("disk on fire"), OSError(28, "No space left"), KeyboardInterrupt()]
)
@pytest.mark.parametrize("external", [None, "outside"])
def test_an_export_that_fails_leaves_what_was_there(
    copied: Path, env: Any, error: BaseException, external: str | None
) -> None:
    before = {path: path.read_bytes() for path in copied.rglob("*") if path.is_file()}
    wanted = KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else BundleError
    outside = None if external is None else copied.parent / external
    with pytest.raises(wanted):
        export_bundle(
            copied, config=experiment(), env=env, algorithm=Fails(error), overwrite=True, external=outside
        )
    assert {path: path.read_bytes() for path in copied.rglob("*") if path.is_file()} == before
    assert listing(copied.parent) == ["copied"]


class Pickles:
    policy = SimpleNamespace(act=lambda observation: 0)

    def save_checkpoint(self, path: Path) -> None:
        path.mkdir()
        (path / "state.pt").write_bytes(pickle.dumps({}))

    def load_checkpoint(self, path: Path) -> None: ...


def test_an_algorithm_that_pickles_is_refused_with_what_to_do(tmp_path: Path, env: Any) -> None:
    with pytest.raises(BundleError, match=r"state.pt: .*save weights as safetensors, or as NumPy arrays"):
        export_bundle(tmp_path / "bundle", config=experiment(), env=env, algorithm=Pickles())
    assert listing(tmp_path) == []


def test_an_algorithm_that_cannot_be_saved_says_what_is_needed(tmp_path: Path, env: Any) -> None:
    algorithm = SimpleNamespace(policy=SimpleNamespace(act=lambda observation: 0))
    with pytest.raises(BundleError, match=r"cannot be saved; give the policy save\(path\) and load\(path\)"):
        export_bundle(tmp_path / "bundle", config=experiment(), env=env, algorithm=algorithm)


def test_equal_policies_give_equal_bundles(env: Any, tmp_path: Path) -> None:
    config = experiment()
    first, second = (
        export_bundle(tmp_path / name, config=config, env=env, algorithm=trained(config, env))
        for name in ("first", "second")
    )
    assert (first / MANIFEST_FILE).read_bytes() == (second / MANIFEST_FILE).read_bytes()


# Weights outside


@pytest.fixture
def outside(tmp_path: Path, env: Any) -> Path:
    config = experiment()
    return export_bundle(
        tmp_path / "bundle",
        config=config,
        env=env,
        algorithm=trained(config, env),
        external=tmp_path / "weights/actor",
    )


def test_weights_outside_are_found_and_vouched_for(outside: Path, tmp_path: Path) -> None:
    opened = load_bundle(outside)
    assert opened.act(OBSERVATIONS[0]) in {0, 1}
    assert not (outside / "weights").exists()
    assert opened.manifest.weights.path == str(tmp_path / "weights/actor")
    assert list(opened.manifest.weights.files) == ["baseline.npz"]


def test_weights_outside_that_changed_are_refused(outside: Path, tmp_path: Path) -> None:
    path = tmp_path / "weights/actor/baseline.npz"
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    with pytest.raises(BundleError, match=r"weights/actor/baseline.npz: changed since"):
        load_bundle(outside)


def test_weights_outside_that_are_gone_can_be_pointed_to(outside: Path, tmp_path: Path) -> None:
    (tmp_path / "weights/actor").rename(tmp_path / "moved")
    with pytest.raises(BundleError, match=r"the weights of .* are missing; put them there, or say"):
        load_bundle(outside)
    assert load_bundle(outside, external=tmp_path / "moved").act(OBSERVATIONS[0]) in {0, 1}


def test_a_relative_path_is_told_from_the_bundle_so_that_both_can_move(
    tmp_path: Path, env: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = experiment()
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    folder = export_bundle(
        "bundle", config=config, env=env, algorithm=trained(config, env), external="big/weights"
    )
    assert load_bundle(folder).manifest.weights.path == "../big/weights"
    (tmp_path / "here").rename(tmp_path / "there")
    assert load_bundle(tmp_path / "there/bundle").act(OBSERVATIONS[0]) in {0, 1}


@pytest.mark.parametrize("where", ["bundle", "bundle/weights", "."])
def test_weights_in_or_around_the_bundle_are_not_outside(tmp_path: Path, env: Any, where: str) -> None:
    config = experiment()
    with pytest.raises(BundleError, match="beside the bundle"):
        export_bundle(
            tmp_path / "bundle",
            config=config,
            env=env,
            algorithm=trained(config, env),
            external=tmp_path / where,
        )


def test_weights_outside_are_replaced_with_their_bundle_and_nothing_else_is(
    outside: Path, tmp_path: Path, env: Any
) -> None:
    config = experiment("random")
    new: Mapping[str, Any] = {"config": config, "env": env, "algorithm": trained(config, env)}
    (tmp_path / "other").mkdir()
    with pytest.raises(BundleError, match="already there and not part of a bundle to replace"):
        export_bundle(outside, **new, overwrite=True, external=tmp_path / "other")
    export_bundle(outside, **new, overwrite=True, external=tmp_path / "weights/actor")
    assert load_bundle(outside).act(OBSERVATIONS[0]) in {0, 1}
    assert load_bundle(outside).manifest.algorithm_id == "random"


# Policies of others


class Table:
    """A third party's policy: one file, and nothing of the document but a size."""

    def __init__(self, size: int = 3, path: str | None = None) -> None:
        self.table = [0] * size if path is None else json.loads(Path(path).read_text())

    def act(self, observation: Any) -> int:
        return int(self.table[int(observation)])

    def save(self, path: Path) -> None:
        Path(path).write_text(json.dumps(self.table))

    def load(self, path: Path) -> None:
        self.table = json.loads(Path(path).read_text())


class SelfMade(Table):
    """One whose factory reads the weights."""

    def kwargs_to_restore(self, kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"path": SAVED}

    def load(self, path: Path) -> None:
        raise AssertionError("the factory has read them")


class WriteOnly(Table):
    load = None  # type: ignore[assignment]


@pytest.fixture
def factories(monkeypatch: pytest.MonkeyPatch) -> str:
    """A module whose classes documents can name."""
    module = SimpleNamespace(Table=Table, SelfMade=SelfMade, WriteOnly=WriteOnly)
    monkeypatch.setitem(sys.modules, "somebodys_policies", module)
    return "somebodys_policies"


@pytest.mark.parametrize(("name", "how"), [("Table", "policy"), ("SelfMade", "kwargs")])
@pytest.mark.parametrize("external", [False, True], ids=["inside", "outside"])
def test_a_third_partys_policy_is_restored_from_what_it_saved(
    factories: str, env: Any, tmp_path: Path, name: str, how: str, external: bool
) -> None:
    config = experiment("frozen", policy={"factory": f"{factories}:{name}", "kwargs": {"size": 3}})
    algorithm = build_algorithm(config.algorithm, spaces_of(env))
    algorithm.policy.table[:] = [7, 8, 9]
    folder = export_bundle(
        tmp_path / "bundle",
        config=config,
        env=env,
        algorithm=algorithm,
        external=tmp_path / "table.json" if external else None,
    )
    opened = load_bundle(folder)
    assert opened.manifest.policy.restored_by == how
    assert [opened.act(place) for place in range(3)] == [7, 8, 9]
    if external:
        (tmp_path / "table.json").rename(tmp_path / "renamed.json")
        assert load_bundle(folder, external=tmp_path / "renamed.json").act(2) == 9


def test_a_policy_that_saves_and_cannot_load_is_refused(factories: str, env: Any, tmp_path: Path) -> None:
    config = experiment("frozen", policy={"factory": f"{factories}:WriteOnly"})
    algorithm = build_algorithm(config.algorithm, spaces_of(env))
    with pytest.raises(BundleError, match=r"has save\(\) and nothing that reads it back"):
        export_bundle(tmp_path / "bundle", config=config, env=env, algorithm=algorithm)


def test_keywords_of_the_reader_stand_above_the_recorded_ones(
    factories: str, env: Any, tmp_path: Path
) -> None:
    config = experiment("frozen", policy={"factory": f"{factories}:Table", "kwargs": {"size": 3}})
    algorithm = build_algorithm(config.algorithm, spaces_of(env))
    folder = export_bundle(tmp_path / "bundle", config=config, env=env, algorithm=algorithm)
    with pytest.raises(Exception, match="takes no 'sise'; did you mean 'size'"):
        load_bundle(folder, policy_kwargs={"sise": 2}).act(0)


def test_weights_that_do_not_fit_say_so(bundle: Path, tmp_path: Path) -> None:
    copied = shutil.copytree(bundle, tmp_path / "copied")
    text = (copied / "config.yaml").read_text()
    (copied / "config.yaml").write_text(text.replace("name: actor-critic\n", "name: random\n", 1))
    rewritten(copied, files=describe_files(copied, frozenset({MANIFEST_FILE})))
    with pytest.raises(CheckpointError, match="written by algorithm 'actor-critic', wanted 'random'"):
        load_bundle(copied).act(OBSERVATIONS[0])


def test_manifests_are_written_in_one_form_only(bundle: Path) -> None:
    content = (bundle / MANIFEST_FILE).read_bytes()
    assert encoded(sealed(msgspec.json.decode(content, type=Manifest))) == content
    assert json.loads(content)["files"]["config.yaml"]["size"] == (bundle / "config.yaml").stat().st_size
