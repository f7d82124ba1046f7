"""str.lower and str.upper as Columns.

Text of ASCII is left to Spark. For other text Java goes by its own version of Unicode, and by the language of the
machine (the I of Turkish has no dot), so there Spark is given Python's own tables.
"""

from collections.abc import Callable, Iterable
from functools import cache

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

# Beyond these no character has another case.
_CASED = range(0x80, 0x20000)
# Beyond these and a few at E0000 none is passed over when a final sigma is looked for.
_PASSED = (range(0x20000), range(0xE0000, 0xE0200))
_SIGMA, _FINAL_SIGMA = "Σ", "ς"


def lower(text: Column) -> Column:
    """Return the text in small letters."""
    dotted = "İ"
    single, small, _ = _table(str.lower)
    whole = F.replace(text, F.lit(dotted), F.lit(dotted.lower()))
    whole = F.when(F.contains(text, F.lit(_SIGMA)), _final_sigmas(whole)).otherwise(whole)
    # Letters of ASCII stand in no table.
    slow = F.translate(whole, single, small)
    return F.when(_is_ascii(text), F.lower(text)).otherwise(slow)


def upper(text: Column) -> Column:
    """Return the text in capitals."""
    single, large, several = _table(str.upper)
    pairs = [F.lit(each) for pair in several.items() for each in pair]
    known = F.create_map(*pairs)
    characters = F.regexp_extract_all(text, F.lit("(?s)."), F.lit(0))
    longer = F.array_join(
        F.transform(characters, lambda each: F.coalesce(F.try_element_at(known, each), each)), ""
    )
    special = F.rlike(text, F.lit(f"[{''.join(several)}]"))
    slow = F.translate(F.when(special, longer).otherwise(text), single, large)
    return F.when(_is_ascii(text), F.upper(text)).otherwise(slow)


def _is_ascii(text: Column) -> Column:
    return F.octet_length(text) == F.length(text)


@cache
def _table(change: Callable[[str], str]) -> tuple[str, str, dict[str, str]]:
    """Characters that become another one, those others, and what becomes of characters that become several."""
    ascii = "".join(each for each in map(chr, range(0x80)) if change(each) != each)
    changed = {each: change(each) for each in map(chr, _CASED) if change(each) != each}
    single = {before: after for before, after in changed.items() if len(after) == 1}
    several = {before: after for before, after in changed.items() if len(after) > 1}
    return ascii + "".join(single), change(ascii) + "".join(single.values()), several


def _final_sigmas(text: Column) -> Column:
    """A capital sigma at the end of a word is another letter when it is small."""
    cased, passed = _sigma_classes()
    pattern = f"({cased}{passed}*){_SIGMA}(?!{passed}*{cased})"
    return F.regexp_replace(text, pattern, f"$1{_FINAL_SIGMA}")


@cache
def _sigma_classes() -> tuple[str, str]:
    """Which characters a word has, and which are passed over when its end is looked for, as Java's patterns have it."""
    cased: list[int] = []
    passed: list[int] = []
    for each in (code for codes in _PASSED for code in codes if not 0xD800 <= code < 0xE000):
        if f"{chr(each)}{_SIGMA}".lower()[-1] == _FINAL_SIGMA:
            cased.append(each)
        elif f"A{chr(each)}{_SIGMA}".lower()[-1] == _FINAL_SIGMA:
            passed.append(each)
    return _class(cased), _class(passed)


def _class(codes: Iterable[int]) -> str:
    spans: list[list[int]] = []
    for each in codes:
        if spans and spans[-1][1] == each - 1:
            spans[-1][1] = each
        else:
            spans.append([each, each])
    return "[" + "".join(rf"\x{{{first:x}}}-\x{{{last:x}}}" for first, last in spans) + "]"
