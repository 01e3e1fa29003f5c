"""YAML documents: safe, bounded, and able to name the line of every value."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from skyfall_core.config import load_config
from skyfall_core.documents import Document, overridden, read_document, with_leaves, yaml_text
from skyfall_core.errors import ConfigError
from skyfall_core.sweep import read_sweep


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "run.yaml"


def read(file: Path, text: str | bytes) -> Document:
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_document(file)


def refusal(file: Path, text: str | bytes) -> str:
    """The message a document is refused with, the file's path shortened to `FILE`."""
    with pytest.raises(ConfigError) as caught:
        read(file, text)
    return str(caught.value).replace(str(file), "FILE")


# ---------------------------------------------------------------- files that are no document


def test_missing_file_is_named(file: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read_document(file)
    assert str(caught.value) == f"{file}: cannot be read: No such file or directory"


def test_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read_document(tmp_path)
    assert str(caught.value) == f"{tmp_path}: cannot be read: Is a directory"


def test_path_through_a_file_is_named(file: Path) -> None:
    file.write_text("a: 1")
    with pytest.raises(ConfigError) as caught:
        read_document(file / "below.yaml")
    assert str(caught.value) == f"{file}/below.yaml: cannot be read: Not a directory"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_file_without_permission_is_named(file: Path) -> None:
    file.write_text("a: 1")
    file.chmod(0)
    with pytest.raises(ConfigError) as caught:
        read_document(file)
    assert str(caught.value) == f"{file}: cannot be read: Permission denied"


def test_path_that_no_system_accepts_is_refused_like_any_other() -> None:
    with pytest.raises(ConfigError, match="cannot be read: embedded null byte"):
        read_document("a\0b")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "FILE: the document is empty"),
        ("\n\n# only a remark\n", "FILE: the document is empty"),
        ("---\n", "FILE: the document is empty"),
        ("- a\n- b\n", "FILE: the document is a list; a mapping of sections is expected"),
        ("just text", "FILE: the document is a str; a mapping of sections is expected"),
        ("42", "FILE: the document is a int; a mapping of sections is expected"),
        (b"a: caf\xe9\n", "FILE: byte 6 is 0xe9, which is not UTF-8; save it as UTF-8"),
        ("a: 1\n".encode("utf-16"), "FILE: byte 0 is 0xff, which is not UTF-8; save it as UTF-8"),
        (
            "a: \0\n",
            "FILE: not valid YAML: unacceptable character #x0000: special characters are not allowed",
        ),
        (
            "a: 1\n---\nb: 2\n",
            "FILE:2:1: not valid YAML: expected a single document in the stream, but found another document",
        ),
        (
            "a:\n\tb: 1\n",
            (
                "FILE:2:1: not valid YAML: while scanning for the next token, "
                "found character '\\t' that cannot start any token"
            ),
        ),
        (
            "a: [1, 2\nb: 3\n",
            "FILE:2:2: not valid YAML: while parsing a flow sequence, expected ',' or ']', but got ':'",
        ),
        ("a: *nowhere\n", "FILE:1:4: not valid YAML: found undefined alias 'nowhere'"),
        (
            "? [a, b]\n: c\n",
            "FILE:1:3: not valid YAML: while constructing a mapping, found unhashable key",
        ),
        (f"a: 1{'0' * 5000}\n", "FILE: not valid YAML: Exceeds the limit (4300 digits) for integer string"),
    ],
)
def test_text_that_is_no_document_is_refused_with_its_place(
    file: Path, text: str | bytes, problem: str
) -> None:
    assert refusal(file, text).startswith(problem)


def test_byte_order_mark_is_no_part_of_the_first_key(file: Path) -> None:
    assert read(file, b"\xef\xbb\xbfa: 1\r\nb: 2\r\n").content == {"a": 1, "b": 2}


# ---------------------------------------------------------------- keys


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: 1\nb: 2\na: 3\n", "FILE:3: a: the key already stands on line 1"),
        ("s:\n  x: 1\n  y: {z: 1, z: 2}\n", "FILE:3: s.y.z: the key already stands on line 3"),
        ("s:\n- {x: 1,\n   x: 2}\n", "FILE:3: s[0].x: the key already stands on line 2"),
        ('a: 1\n"a": 2\n', "FILE:2: a: the key already stands on line 1"),
        ("s: {16: a, 0x10: b}\n", "FILE:1: s.16: the key already stands on line 1"),
        ("s: {yes: a,\n true: b}\n", "FILE:2: s.True: the key already stands on line 1"),
        ("s: {1: a,\n true: b}\n", "FILE:2: s.True: the key already stands on line 1"),
    ],
)
def test_key_that_stands_twice_is_refused_however_it_is_spelled(file: Path, text: str, problem: str) -> None:
    assert refusal(file, text) == problem


def test_same_key_in_two_mappings_is_no_repetition(file: Path) -> None:
    assert read(file, "a: {x: 1}\nb: {x: 2}\nc: [{x: 3}, {x: 4}]\n").content["c"] == [{"x": 3}, {"x": 4}]


def test_numbers_and_their_text_are_different_keys(file: Path) -> None:
    assert read(file, "s: {1: a, '1': b, null: c}\n").content == {"s": {1: "a", "1": "b", None: "c"}}


def test_merged_mapping_may_be_overridden(file: Path) -> None:
    document = read(file, "base: &b {x: 1, y: 2}\nthis:\n  <<: *b\n  y: 3\n")
    assert document.content["this"] == {"x": 1, "y": 3}


# ---------------------------------------------------------------- values


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 0.001),
        ("1E5", 100000.0),
        ("-2e+3", -2000.0),
        (".5e3", 500.0),
        ("1.5e3", 1500.0),
        ("1_0e1", 100.0),
        ("1.5", 1.5),
        ("1_000", 1000),
        ("1e", "1e"),
        ("e5", "e5"),
        ("v1e5", "v1e5"),
        ("'1e-3'", "1e-3"),
        ("on", True),
        ("off", False),
        ("yes", True),
        ("'yes'", "yes"),
        ("~", None),
        ("", None),
        ("2026-01-31", "2026-01-31"),
        ("2026-01-31 10:00:00", "2026-01-31 10:00:00"),
        (".inf", float("inf")),
    ],
)
def test_scalar_is_read_as(file: Path, text: str, value: Any) -> None:
    found = read(file, f"a: {text}\n").content["a"]
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize(
    "tag",
    [
        "python/object/apply:os.system",
        "python/name:os.system",
        "python/tuple",
        "binary",
        "set",
        "omap",
        "timestamp",
    ],
)
def test_tag_beyond_plain_values_is_refused(file: Path, tag: str) -> None:
    problem = f"could not determine a constructor for the tag 'tag:yaml.org,2002:{tag}'"
    assert refusal(file, f"a: 1\nb: !!{tag} [x]\n") == f"FILE:2:4: not valid YAML: {problem}"


def test_tag_that_names_a_call_executes_nothing(file: Path, tmp_path: Path) -> None:
    witness = tmp_path / "executed"
    for tag in (
        "python/object/apply:os.mkdir",
        "python/object/new:os.mkdir",
        "python/object/apply:pathlib.Path.touch",
    ):
        refusal(file, f"a: !!{tag} ['{witness}']\n")
    assert not witness.exists()


@pytest.mark.parametrize("text", ['"a\\0b"', '"\\ud800"', '{"\\udfff": 1}'])
def test_text_that_no_file_can_hold_is_refused(file: Path, text: str) -> None:
    assert refusal(file, f"a: 1\nb: {text}\n").endswith(
        "holds a NUL or half a surrogate pair, which no file can"
    )
    assert refusal(file, f"a: 1\nb: {text}\n").startswith("FILE:2: ")


# ---------------------------------------------------------------- bombs


@pytest.mark.parametrize("text", ["a: &a [*a]\n", "a: &a {b: {c: *a}}\n", "&a b: {c: 1, <<: &d {<<: *d}}\n"])
def test_alias_to_its_own_value_is_refused(file: Path, text: str) -> None:
    assert refusal(file, text) == "FILE:1: an alias leads to the value it stands in; write the value out"


@pytest.mark.parametrize("form", ["[{}]", "{{{}}}"])
def test_aliases_that_multiply_are_refused(file: Path, form: str) -> None:
    lists = form == "[{}]"
    lines = ["a0: &a0 " + ("[x]" if lists else "{x: 1}")]
    for level in range(1, 30):
        inner = ", ".join(f"*a{level - 1}" if lists else f"k{i}: *a{level - 1}" for i in range(9))
        lines.append(f"a{level}: &a{level} " + form.format(inner))
    assert "aliases make this more than 1,000,000 values; write out what is needed" in refusal(
        file, "\n".join(lines)
    )


def test_merges_that_multiply_are_refused(file: Path) -> None:
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 30)]
    assert "aliases make this more than 1,000,000 values" in refusal(file, "\n".join(lines))


@pytest.mark.parametrize("levels", [101, 300, 20_000])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ("{a: ", "}")])
def test_deep_nesting_is_refused(file: Path, levels: int, opening: str, closing: str) -> None:
    text = "a: " + opening * levels + closing * levels
    assert refusal(file, text).endswith("values are nested deeper than 100 levels")


def test_ordinary_aliases_give_each_place_the_value(file: Path) -> None:
    document = read(file, "a: &x {y: [1, 2]}\nb: *x\n")
    assert document.content == {"a": {"y": [1, 2]}, "b": {"y": [1, 2]}}
    assert document.place("b.y") == f"{file}:2: b.y"


# ---------------------------------------------------------------- places


def test_place_names_the_line_of_every_value(file: Path) -> None:
    document = read(
        file,
        "# a remark\nenvironment:\n  id: x\n\n  wrappers:\n    - factory: f\n      kwargs: {a: 1}\n"
        "    - factory: g\n",
    )
    expected = {
        "environment": 2,
        "environment.id": 3,
        "environment.wrappers": 5,
        "environment.wrappers[0]": 6,
        "environment.wrappers[0].factory": 6,
        "environment.wrappers[0].kwargs.a": 7,
        "environment.wrappers[1].factory": 8,
    }
    assert {dotted: document.place(dotted) for dotted in expected} == {
        dotted: f"{file}:{line}: {dotted}" for dotted, line in expected.items()
    }


def test_place_of_an_absent_value_is_that_of_what_it_would_stand_in(file: Path) -> None:
    document = read(file, "a:\n  b: [{}]\n")
    assert document.place("a.b[0].missing") == f"{file}:2: a.b[0].missing"
    assert document.place("nowhere") == f"{file}: nowhere"
    assert document.place("") == str(file)


def test_place_in_content_without_a_file_is_the_path_alone() -> None:
    assert Document({"a": 1}).place("a") == "a"
    assert Document({"a": 1}).place("") == ""


# ---------------------------------------------------------------- --set


def test_setting_replaces_one_value_and_leaves_the_document_alone(file: Path) -> None:
    document = read(file, "a: {b: 1, c: 2}\n")
    changed = overridden(document, ["a.b=1e-3", "x.y.z=[1, two]"])
    assert changed.content == {"a": {"b": 0.001, "c": 2}, "x": {"y": {"z": [1, "two"]}}}
    assert document.content == {"a": {"b": 1, "c": 2}}
    assert document.overrides == {}


def test_value_may_hold_equals_signs(file: Path) -> None:
    assert overridden(read(file, "a: 1\n"), ["a=b=c"]).content == {"a": "b=c"}


def test_later_setting_wins(file: Path) -> None:
    document = read(file, "a: {b: 1}\n")
    assert overridden(document, ["a.b=2", "a.b=3"]).content == {"a": {"b": 3}}
    assert overridden(document, ["a.b=2", "a={c: 4}"]).content == {"a": {"c": 4}}


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("a", "--set a: expected dotted.path=value, such as rollout.total_steps=500"),
        ("=1", "--set =1: expected dotted.path=value, such as rollout.total_steps=500"),
        ("a..b=1", "--set a..b=1: expected dotted.path=value, such as rollout.total_steps=500"),
        ("a.b.c=1", "--set a.b.c=1: a.b is 1, which has no keys"),
        ("l.x=1", "--set l.x=1: l is [1], which has no keys"),
        (
            "u=http://x//y: [",
            (
                "--set u=http://x//y: [:1:15: not valid YAML: while parsing a flow node, "
                "expected the node content, but found '<stream end>'"
            ),
        ),
        ("a={b: 1, b: 2}", "--set a={b: 1, b: 2}:1: b: the key already stands on line 1"),
        (
            "a=!!python/name:os.system x",
            (
                "--set a=!!python/name:os.system x:1:1: not valid YAML: could not determine a constructor "
                "for the tag 'tag:yaml.org,2002:python/name:os.system'"
            ),
        ),
    ],
)
def test_setting_of_another_form_is_refused(file: Path, setting: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        overridden(read(file, "a: {b: 1}\nl: [1]\n"), [setting])
    assert str(caught.value) == problem


def test_place_of_what_a_setting_gave_is_the_setting(file: Path) -> None:
    document = overridden(read(file, "a:\n  b: {c: 1}\n  d: 2\n"), ["a.b={c: 5}"])
    assert document.place("a.b.c") == "--set a.b={c: 5}: a.b.c"
    assert document.place("a.d") == f"{file}:3: a.d"


def test_place_is_that_of_the_setting_that_had_the_last_word(file: Path) -> None:
    document = overridden(read(file, "a: {b: 1}\n"), ["a.b=2", "a={b: 3}"])
    assert document.place("a.b") == "--set a={b: 3}: a.b"


def test_relative_path_starts_at_the_document_or_where_it_was_typed(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    document = overridden(read(file, "a: x\n"), ["b=x"])
    assert document.absolute("a", "../runs") == str(tmp_path.parent / "runs")
    assert document.absolute("b", "../runs") == str(tmp_path / "runs")
    assert document.absolute("a", "/runs") == "/runs"
    assert Document({}).absolute("a", "runs") == "runs"


# ---------------------------------------------------------------- writing

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
    | st.sampled_from(
        ["1e-3", "12e4", ".5e3", "on", "2026-01-31", "0x1", "1:30", "<<", "=", "~", "SEED", "\x85", "\ufeff"]
    ),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("ab01e-", max_size=4), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(PLAIN)
@settings(deadline=None)
def test_what_is_written_reads_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    file = tmp_path_factory.getbasetemp() / "written.yaml"
    file.write_text(yaml_text({"value": value, "again": value}), encoding="utf-8", newline="")
    content = read_document(file).content
    assert content == {"value": value, "again": value}
    assert repr(content["value"]) == repr(value)


def test_written_text_is_yaml_that_the_safe_loader_takes() -> None:
    assert yaml.safe_load(yaml_text({"path": Path("a/b"), "keys": {0: "x"}})) == {
        "path": "a/b",
        "keys": {0: "x"},
    }


def test_shared_values_are_written_out() -> None:
    shared = [1]
    assert yaml_text({"a": shared, "b": shared}) == "a:\n- 1\nb:\n- 1\n"


def test_object_that_yaml_has_no_word_for_is_named() -> None:
    with pytest.raises(
        ConfigError, match=r"^<object object at .*> cannot stand in a document; name a factory"
    ):
        yaml_text({"a": object()})


@given(PLAIN)
@settings(deadline=None)
def test_with_leaves_copies_what_it_does_not_change(value: Any) -> None:
    copy = with_leaves(value, lambda dotted, leaf: leaf)
    assert repr(copy) == repr(value)
    if isinstance(value, list | dict):
        assert copy is not value


def test_with_leaves_tells_where_each_value_stands() -> None:
    assert with_leaves({"a": [{"b": 1}, 2], "c": 3}, lambda dotted, leaf: dotted) == {
        "a": [{"b": "a[0].b"}, "a[1]"],
        "c": "c",
    }


@pytest.mark.parametrize(
    ("text", "read", "told"),
    [
        ("{base: {}, families: {}, seeds: [0]}", load_config, "describes a sweep: skyfall sweep"),
        (
            "{policy: {}, data: {}, output_dir: x}",
            load_config,
            "describes a supervised warm start: skyfall sft",
        ),
        (
            "{traces: [], output: x}",
            load_config,
            "describes a warm-up of the context model: skyfall lcm-warmup",
        ),
        ("{environment: {}, algorithm: {}}", read_sweep, "describes a single run: skyfall run"),
    ],
)
def test_a_document_of_another_command_is_told_by_one_line(
    file: Path, text: str, read: Callable[[Path], object], told: str
) -> None:
    file.write_text(text)
    with pytest.raises(ConfigError) as refusal:
        read(file)
    assert str(refusal.value) == f"{file} {told} {file}"
