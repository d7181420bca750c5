"""The rule-made twin of a corpus in the PKU standard: other tags and other word boundaries, decided by context.

It is for demonstrations and tests: gold annotation to two standards over one text, whose difference is known and
documented (docs/twin.md). Nobody annotates by it, and everything that is made from it says that it is made by rules.

    JOINS, CUTS, TAGS   the rules, in the order in which they are tried; the first that fits a place decides
    annotate            a layer in the PKU standard -> the layer of the twin over the same text
    best_map            the best context-free map by word and tag, learnt with both sides gold: what has to be beaten
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from duilian.corpus import Corpus, Label, Layer, number_labels
from duilian.errors import MismatchError
from duilian.lifting import character_units, label_units, layer_from
from duilian.ragged import offsets_of

NAME = "rule-made"
"""The name of the twin: of its standard, its sides, its layers; files made from it begin with it."""

NOUNS = frozenset(("n", "nz", "vn", "an", "Ng", "j", "s"))
VERBS = frozenset(("v", "vd", "vx", "Vg"))
ADJECTIVES = frozenset(("a", "b", "z", "Ag", "Bg"))
PREDICATES = VERBS | ADJECTIVES | {"ad", "d", "i", "l"}
NAMES = frozenset(("nr", "nrf", "nrg"))
OBJECTS = NOUNS | NAMES | {"ns", "nt", "nx", "m", "r", "q", "t"}


class Sentence:
    """Words and tags of one sentence; outside of it both are the empty string."""

    def __init__(self, words: list[str], tags: list[str]) -> None:
        self.words, self.tags = words, tags

    def word(self, k: int) -> str:
        """Word number k."""
        return self.words[k] if 0 <= k < len(self.words) else ""

    def tag(self, k: int) -> str:
        """The tag of word number k."""
        return self.tags[k] if 0 <= k < len(self.tags) else ""


@dataclass(frozen=True)
class Rule:
    """A rule of the twin.

    says:    the rule in words, as the document has it
    fits:    whether it decides about word k of a sentence
    tag:     what the word, the joined words, or both parts of the cut word are called ("TN TU": each part its own)
    before:  an example in the PKU standard;  after: the same by the rules
    """

    name: str
    says: str
    fits: Callable[[Sentence, int], bool]
    tag: str
    before: str
    after: str


def _date(s: Sentence, k: int) -> bool:
    return s.tag(k) == "t" and len(s.word(k)) > 1 and s.word(k)[-1] in "年月日"


JOINS = (
    Rule(
        "full-name",
        "A surname and a given name, that is two words tagged nr side by side, are one word.",
        lambda s, k: s.tag(k) in NAMES and s.tag(k + 1) in NAMES,
        "NF",
        "记者/n 朱/nr 云/nr 说/v",
        "记者/N 朱云/NF 说/V",
    ),
    Rule(
        "counted-noun",
        "A number and its measure word are one word if a noun comes next; otherwise they are two.",
        lambda s, k: s.tag(k) == "m" and s.tag(k + 1) == "q" and s.tag(k + 2) in NOUNS,
        "MQ",
        "三/m 个/q 人/n 走/v 三/m 次/q",
        "三个/MQ 人/N 走/VT 三/M 次/Q",
    ),
    Rule(
        "compound",
        "The last two nouns of a run of nouns are one word; the nouns before them stay words.",
        lambda s, k: s.tag(k) in NOUNS and s.tag(k + 1) in NOUNS and s.tag(k + 2) not in NOUNS,
        "NC",
        "国家/n 经济/n 政策/n",
        "国家/NM 经济政策/NC",
    ),
    Rule(
        "aspect",
        "A verb and 了, 着 or 过 are one word if what the verb governs comes next; otherwise they are two.",
        lambda s, k: s.tag(k) in VERBS and s.word(k + 1) in ("了", "着", "过") and s.tag(k + 2) in OBJECTS,
        "VA",
        "看/v 了/u 书/n ，/w 走/v 了/u",
        "看了/VA 书/N ，/W 走/V 了/U",
    ),
)
"""Rules that join word k and the word behind it."""

CUTS = (
    Rule(
        "date-before-date",
        "A date loses its unit (年, 月, 日), which becomes a word, if another such date comes next.",
        lambda s, k: _date(s, k) and _date(s, k + 1),
        "TN TU",
        "１月/t ３日/t 到/v",
        "１/TN 月/TU ３日/T 到/V",
    ),
    Rule(
        "cut-idiom",
        "A fixed expression of four characters is cut in the middle if a noun or 的 comes next.",
        lambda s, k: s.tag(k) in ("i", "l", "z") and len(s.word(k)) == 4
        and (s.tag(k + 1) in NOUNS or s.word(k + 1) == "的"),
        "IH IH",
        "实事求是/i 的/u 态度/n ，/w 实事求是/i",
        "实事/IH 求是/IH 的/UV 态度/N ，/W 实事求是/ID",
    ),
)  # fmt: skip
"""Rules that cut word k in two."""

TAGS = (
    Rule("noun-before-noun", "A noun before another noun is NM.",
         lambda s, k: s.tag(k) in NOUNS and s.tag(k + 1) in NOUNS, "NM", "国家/n 经济/n 政策/n", "国家/NM 经济政策/NC"),
    Rule("noun", "Any other noun is N; nouns are n, nz, vn, an, Ng, j and s.",
         lambda s, k: s.tag(k) in NOUNS, "N", "学习/vn 好/a", "学习/N 好/AP"),
    Rule("attribute", "An adjective (a, b, z) is AT before a noun or 的.",
         lambda s, k: s.tag(k) in ADJECTIVES and (s.tag(k + 1) in NOUNS or s.word(k + 1) == "的"),
         "AT", "新/a 世纪/n 好/a", "新/AT 世纪/N 好/AP"),
    Rule("predicate", "Any other adjective is AP.", lambda s, k: s.tag(k) in ADJECTIVES, "AP",
         "很/d 好/a", "很/DA 好/AP"),
    Rule("adverbial", "An adjective that modifies a verb (ad) is AV.", lambda s, k: s.tag(k) == "ad", "AV",
         "积极/ad 参加/v", "积极/AV 参加/V"),
    Rule("verb-before-verb", "A verb is VM before another verb.",
         lambda s, k: s.tag(k) in VERBS and s.tag(k + 1) in VERBS, "VM", "要/v 去/v", "要/VM 去/V"),
    Rule("verb-with-object", "A verb is VT before a noun, a name, a number, a measure word, a pronoun or a time word.",
         lambda s, k: s.tag(k) in VERBS and s.tag(k + 1) in OBJECTS, "VT", "爱/v 北京/ns", "爱/VT 北京/NS"),
    Rule("verb", "Any other verb (v, vd, vx) is V.", lambda s, k: s.tag(k) in VERBS, "V", "来/v 吧/y", "来/V 吧/X"),
    Rule("degree", "An adverb is DA before an adjective.",
         lambda s, k: s.tag(k) in ("d", "Dg") and s.tag(k + 1) in ADJECTIVES, "DA", "很/d 好/a", "很/DA 好/AP"),
    Rule("adverb", "Any other adverb is D.", lambda s, k: s.tag(k) in ("d", "Dg"), "D", "都/d 来/v", "都/D 来/V"),
    Rule("determiner", "A pronoun is RD before a noun, a number or a measure word.",
         lambda s, k: s.tag(k) in ("r", "Rg") and (s.tag(k + 1) in NOUNS or s.tag(k + 1) in ("m", "q")), "RD",
         "我/r 爱/v 这/r 书/n", "我/RP 爱/VT 这/RD 书/N"),
    Rule("pronoun", "Any other pronoun is RP.", lambda s, k: s.tag(k) in ("r", "Rg"), "RP", "我/r 来/v", "我/RP 来/V"),
    Rule("de-of-predicate", "的 is UV behind a verb, an adjective, an adverb or a fixed expression.",
         lambda s, k: s.word(k) == "的" and s.tag(k) == "u" and s.tag(k - 1) in PREDICATES, "UV",
         "来/v 的/u 人/n", "来/V 的/UV 人/N"),
    Rule("de-of-noun", "Any other 的 is UN.", lambda s, k: s.word(k) == "的" and s.tag(k) == "u", "UN",
         "我/r 的/u 书/n", "我/RP 的/UN 书/N"),
    Rule("person", "A name of a person that stands alone is NP.", lambda s, k: s.tag(k) in NAMES, "NP",
         "雷锋/nr 说/v", "雷锋/NP 说/V"),
    Rule("other-name", "Names of organisations and foreign letters are NO.",
         lambda s, k: s.tag(k) in ("nt", "nx"), "NO", "新华社/nt 说/v", "新华社/NO 说/V"),
    Rule("idiom", "A fixed expression that is not cut is ID.", lambda s, k: s.tag(k) in ("i", "l"), "ID",
         "实事求是/i 。/w", "实事求是/ID 。/W"),
)  # fmt: skip
"""Rules that give a word that is neither joined nor cut its tag."""

PLAIN = {
    "c": "C", "f": "LOC", "m": "M", "Mg": "M", "ns": "NS", "p": "P", "q": "Q", "t": "T", "Tg": "T", "u": "U", "w": "W",
}  # fmt: skip
"""Tags that become one tag wherever they stand; all others become X."""


def annotate(corpus: Corpus, layer: Layer | None = None) -> Layer:
    """The twin of a layer in the PKU standard (None: the first layer). A word without a tag becomes X."""
    source = corpus.layer() if layer is None else layer
    only = Corpus(corpus.text, corpus.offsets, (source,))
    starts, ends, tags, counts = [], [], [], []
    sentences = zip(only.words(), only.tags(), source.offsets.tolist(), strict=False)
    for words, labels, first in sentences:
        here = Sentence(words, [label if isinstance(label, str) else "" for label in labels])
        n = 0
        for begin, cut, end, tag in _pieces(here):
            a, b = int(source.starts[first + begin]), int(source.ends[first + end])
            middle = a + cut if cut else b
            for part, (x, y) in zip(tag.split(), ((a, middle), (middle, b)), strict=False):
                starts.append(x)
                ends.append(y)
                tags.append(part)
                n += 1
        counts.append(n)
    written: list[Label] = list(tags)
    known, labels_, sets = number_labels(written)
    begins, stops = np.array(starts, np.int64), np.array(ends, np.int64)
    return Layer(NAME, known, offsets_of(counts), begins, stops, labels_, sets, NAME)


def convert(corpus: Corpus) -> Corpus:
    """A corpus in the PKU standard -> the same text with the twin as its only layer."""
    return Corpus(corpus.text, corpus.offsets, (annotate(corpus),))


def _pieces(s: Sentence) -> Iterator[tuple[int, int, int, str]]:
    """(first word, characters before a cut or 0, last word, tag or two tags) of each piece of a sentence."""
    k = 0
    while k < len(s.words):
        joined = next((rule for rule in JOINS if rule.fits(s, k)), None)
        cut = next((rule for rule in CUTS if rule.fits(s, k)), None)
        if joined is not None:
            yield k, 0, k + 1, joined.tag
            k += 2
            continue
        if cut is not None:
            length = len(s.word(k))
            yield k, (length - 1 if cut.name == "date-before-date" else length // 2), k, cut.tag
        else:
            tag = next((rule.tag for rule in TAGS if rule.fits(s, k)), None)
            yield k, 0, k, tag or PLAIN.get(s.tag(k), "X")
        k += 1


def best_map(corpus: Corpus, source: Layer, target: Layer, learnt: tuple[Corpus, Layer, Layer] | None = None) -> Layer:
    """What the best map by word and tag makes of the source: for each (word, tag) what the target most often has there.

    learnt: corpus, source and target that the map is learnt from, both gold; None: from what it is tried on, which no
    map without context can surpass. It says of every character of a word how the target labels it, so that it can join
    and cut words, too. An unknown word is mapped by its tag and length, an unknown tag to the commonest label.
    """
    where = (corpus, source, target) if learnt is None else learnt
    names, examples = _examples(*where)
    by_word: dict[tuple[str, str], Counter[tuple[int, ...]]] = defaultdict(Counter)
    by_tag: dict[tuple[str, int], Counter[tuple[int, ...]]] = defaultdict(Counter)
    for word, tag, labels in examples:
        by_word[word, tag][labels] += 1
        by_tag[tag, len(labels)][labels] += 1
    whole = Counter(label for _, _, labels in examples for label in labels)
    if not whole:
        raise MismatchError("there is nothing to learn a map from: no word with a tag")
    commonest = whole.most_common(1)[0][0]
    found = np.full(len(character_units(corpus)), commonest, np.int32)
    for word, tag, begin, end in _words(corpus, source):
        seen = by_word.get((word, tag)) or by_tag.get((tag, end - begin))
        if seen:
            found[begin:end] = min(seen, key=lambda labels: (-seen[labels], labels))
    return layer_from(corpus, found, names, "segpos", None, target.name)


def _examples(
    corpus: Corpus, source: Layer, target: Layer
) -> tuple[tuple[str, ...], list[tuple[str, str, tuple[int, ...]]]]:
    """Names of labels, and for each word of the source its text, its tag, and the target's labels of its characters."""
    labelled = label_units(corpus, target, "segpos")
    labels = labelled.labels.tolist()
    return labelled.names, [(word, tag, tuple(labels[begin:end])) for word, tag, begin, end in _words(corpus, source)]


def _words(corpus: Corpus, layer: Layer) -> Iterator[tuple[str, str, int, int]]:
    """Text, tag, first character unit and the one behind the last of each word."""
    units = character_units(corpus)
    begins: NDArray[np.int64] = np.searchsorted(units.starts, layer.starts)
    ends: NDArray[np.int64] = np.searchsorted(units.starts, layer.ends)
    only = Corpus(corpus.text, corpus.offsets, (layer,))
    flat = (
        (w, t) for words, tags in zip(only.words(), only.tags(), strict=True) for w, t in zip(words, tags, strict=True)
    )
    for (word, tag), begin, end in zip(flat, begins.tolist(), ends.tolist(), strict=True):
        if end > begin:
            yield word, tag if isinstance(tag, str) else "", begin, end
