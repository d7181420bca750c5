"""Plots of reports: text is text, colours are those of the page, and what is drawn is where the numbers are."""

from __future__ import annotations

import re
from collections.abc import Callable
from xml.etree import ElementTree

import pytest

from duilian.report.plotting import SERIES, Look, axes, panel, swatch, text_width


def drawing(draw: Callable[..., None], **margins: float) -> str:
    with axes(**margins) as (plot, drawn):
        draw(plot)
    return panel(drawn, 'words with "quotes" & <marks>').svg


def test_text_stays_text_whatever_it_is() -> None:
    labels = ["$x_1$", "<b>&", "名词", "اسم", "🙂", r"\frac"]
    svg = drawing(lambda plot: (plot.plot(range(6)), plot.set_xticks(range(6), labels)))
    texts = [element.text for element in ElementTree.fromstring(svg).iter("text")]
    assert set(labels) <= set(texts)


def test_colours_are_those_of_the_page_and_nothing_has_an_id() -> None:
    def draw(plot: object) -> None:
        for k in range(SERIES + 2):
            plot.plot([0, 1], [k, k + 1], **Look(k).style)  # type: ignore[attr-defined]

    svg = drawing(draw)
    colours = set(re.findall(r"(?:fill|stroke):([^;\"]+)", svg))
    assert {f"var(--s{k})" for k in range(SERIES)} <= colours
    assert all(colour == "none" or colour.startswith("var(--") for colour in colours)
    assert not re.search(r"\bid=|url\(|font-family|<style|xlink", svg)
    assert 'aria-label="words with &quot;quotes&quot; &amp; &lt;marks&gt;"' in svg


def test_points_are_where_their_numbers_are() -> None:
    def draw(plot: object) -> None:
        plot.set(xlim=(0, 10), ylim=(0, 100))  # type: ignore[attr-defined]
        plot.plot([2.5, 5, 10], [0, 50, 100], **Look(1).style)  # type: ignore[attr-defined]

    svg = drawing(draw, width=300, height=200, left=50, right=50, bottom=50, top=50)
    places = re.findall(r'<path d="[^"]+" transform="translate\(([\d.]+) ([\d.]+)\)" style="[^"]*var\(--s1\)', svg)
    assert [(float(x), float(y)) for x, y in places] == [(100, 150), (150, 100), (250, 50)]


def test_series_can_be_told_apart_without_colours() -> None:
    looks = [Look(k) for k in range(2 * SERIES)]
    assert len({(look.marker, look.dash) for look in looks}) == len(looks)
    assert len({(look.colour, look.marker, look.dash) for look in looks}) == len(looks)
    assert Look(0, flat=True).marker == ""
    assert Look(0, points=True).dash == ""


def test_a_swatch_is_decoration() -> None:
    assert 'aria-hidden="true"' in swatch(Look(3))
    assert "var(--s3)" in swatch(Look(3))


def test_an_unforeseen_shape_is_not_lost_in_silence() -> None:
    with pytest.raises(ValueError, match="drew a 'image'"):
        drawing(lambda plot: plot.imshow([[1, 2], [3, 4]]))


def test_wide_characters_are_wide() -> None:
    assert text_width("名词") == 20
    assert text_width("NN") < text_width("名词")
