"""Text that is not translated."""

import pytest

from transept.text.spans import protected


def spans(text: str, source: str = "en", target: str = "de") -> list[str]:
    return [text[one.start : one.end] for one in protected(text, source, target)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("See https://example.com/a?b=1&c=2#top.", ["https://example.com/a?b=1&c=2#top"]),
        ("(at https://example.org/wiki/Beam_(search))", ["https://example.org/wiki/Beam_(search)"]),
        ("Go to example.org/help, or www.example.net!", ["example.org/help", "www.example.net"]),
        ("Mail info@example.org, please.", ["info@example.org"]),
        (
            "Mail 'jo@example.org' or j.o'neil@example.org.",
            ["jo@example.org", "j.o'neil@example.org"],
        ),
        ("@bob and @team/back-end", ["@bob", "@team/back-end"]),
        ("Ask in #help-desk.", ["#help-desk"]),
        ("I ❤️ 👩‍👩‍👧 and 🇩🇪", ["❤️", "👩‍👩‍👧", "🇩🇪"]),
        ("{x} {{y}} ${z} <ph/>", ["{x}", "{{y}}", "${z}", "<ph/>"]),
        ("%s or %r or %1$s or %(n)d", ["%s", "%r", "%1$s", "%(n)d"]),
        ("Sphinx v%s, auto%s: %dm %.3fs", ["v%s", "auto%s", "%dm", "%.3fs"]),
        ("a " + "-a" * 600 + " b", ["-a" * 600]),
        (r"Error:\n%s was not found.\n\n", [r"\n%s", r"\n\n"]),
        ("Run `a b` with --force", ["`a b`", "--force"]),
        (
            "in /etc/hosts, ~/x.txt and C:\\Temp\\a.log",
            ["/etc/hosts", "~/x.txt", "C:\\Temp\\a.log"],
        ),
        ("src/main.py, README.md and .gitignore", ["src/main.py", "README.md", ".gitignore"]),
        ("user.getName(), max_retries, myName", ["user.getName()", "max_retries", "myName"]),
        ("v2.3.1, 1.0.0-rc.1, Python 3.11.", ["v2.3.1", "1.0.0-rc.1", "3.11"]),
        ("+49 30 901820 and 030/901820-11", ["+49 30 901820", "030/901820-11"]),
        ("+49 (0)89 123456, (030) 901820", ["+49 (0)89 123456", "(030) 901820"]),
        ("Parcel 00340434161094042557 (2.4 kg)", ["00340434161094042557", "2.4"]),
        ("%d %% done", ["%d", "%%"]),
        ("The end. ----- The rest. === ___", ["-----", "===", "___"]),
        ("DE89 3704 0044 0532 0130 00", ["DE89 3704 0044 0532 0130 00"]),
        ("INV-2024-00123, 3f68c19ab, 1234567", ["INV-2024-00123", "3f68c19ab", "1234567"]),
        ("$12,345.67 on 2026-11-17 at 3:30 pm", ["$12,345.67", "2026-11-17", "3:30 pm"]),
        ("The label says 注意.", ["注意"]),
    ],
)
def test_protected_finds_the_span(text: str, expected: list[str]) -> None:
    assert spans(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "He lives here and/or there.",
        "It moves at 5 km/h, 3-2 up, in the 1990s.",
        "A 19-year-old of the 20th century, e.g. this, i.e. that, in the U.S.",
        "50 % der Leute, 20% mehr",
        "Goethe's Faust: well-known, isn't it? a < b",
        "In 2014 there were 12 of them.",
        "The facade was defaced.",
    ],
)
def test_protected_finds_nothing_in_ordinary_text(text: str) -> None:
    assert spans(text) == []


@pytest.mark.parametrize(
    ("text", "pair", "expected"),
    [
        ("1,234.5", ("en", "de"), "1.234,5"),
        ("1.234,5", ("de", "en"), "1,234.5"),
        ("12.345,67 €", ("de", "en"), "€12,345.67"),
        ("£12,345.67", ("en", "de"), "12.345,67 £"),
        ("3:30 pm", ("en", "de"), "15:30 Uhr"),
        ("12:15 a.m. sharp", ("en", "de"), "0:15 Uhr"),
        ("15.30 Uhr", ("de", "en"), "15:30"),
        ("1,234.5", ("en", "xx"), "1,234.5"),
    ],
)
def test_figures_are_written_as_in_the_target_language(
    text: str, pair: tuple[str, str], expected: str
) -> None:
    (span,) = protected(text, *pair)
    assert span.target == expected
    assert span.is_figure


def test_text_in_another_script_is_translated_by_a_model_of_that_script() -> None:
    assert spans("注意", "ja", "en") == []
    assert spans("東京は日本の首都です。" * 100, "ja", "en") == []
