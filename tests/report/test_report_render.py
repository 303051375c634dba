"""The page: self-contained, well formed, accessible, escaped, and true to the card."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from kvassay.card.build import build_card
from kvassay.card.evidence import RunRecords
from kvassay.report.render import render_report, source
from support import fixture_records as fixture

VOID = {"meta", "link", "br", "hr", "img", "input"}
RECORDS = fixture.records()


def page_of(records: RunRecords = RECORDS) -> str:
    return render_report(build_card(records, fixture.plan(), fixture.surroundings()), records)


class Page(HTMLParser):
    """Checks nesting and gathers what the tests ask about."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.headings: list[int] = []
        self.feed(html)
        self.close()
        assert not self.open, f"left open: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if re.fullmatch(r"h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open
        assert self.open.pop() == tag, f"</{tag}> closes something else at {self.getpos()}"

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "title"):
            self.words.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def test_self_contained_small_and_well_formed() -> None:
    html = page_of()
    page = Page(html)
    assert len(html.encode()) < 2**20
    assert not page.all("script")
    for _, attributes in page.tags:
        for key in ("src", "href", "srcset", "action", "data"):
            target = attributes.get(key) or "#"
            assert target.startswith("#") or target == "data:,", f"{key} leaves the page: {target}"
    assert "http" not in re.sub(r'http-equiv="Content-Security-Policy"', "", html)
    assert "url(" not in html
    assert "@import" not in html
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {(a["href"] or "")[1:] for a in page.all("a")} <= set(ids)


def test_decision_scope_and_reasons_stand_before_everything_else() -> None:
    text = Page(page_of()).text
    order = [
        "Abstain",
        "reference , from",
        "12 of 1,288 items needed to show no_worse at 2 points",
        "Figures of the map arm",
        "30 layers that own a cache",
        "Every gate must be met to approve",
    ]
    places = [text.index(words) for words in order]
    assert places == sorted(places)


def test_accessible_structure() -> None:
    page = Page(page_of())
    assert page.all("html")[0]["lang"] == "en"
    assert page.headings[0] == 1
    assert page.headings.count(1) == 1
    assert all(after - before <= 1 for before, after in zip(page.headings, page.headings[1:], strict=False))
    for attributes in page.all("svg"):
        assert attributes.get("aria-hidden") == "true" or (attributes.get("role") == "img" and attributes.get("aria-label"))
    assert all(attributes.get("scope") in ("col", "row") for attributes in page.all("th"))
    for attributes in page.all("div"):
        if attributes.get("class") == "scroll":
            assert attributes["tabindex"] == "0"
            assert attributes["role"] == "region"
            assert attributes["aria-label"]


def luminance(colour: str) -> float:
    channels = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_contrast_of_text(mode: str) -> None:
    light, dark = source("style.css").split("@media (prefers-color-scheme: dark)")[:2]
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", light.split("* {")[0]))
    if mode == "dark":
        colours |= dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", dark.split("* {")[0]))
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    pairs = [("ink", back) for back in ("page", "panel", *(f"f{i}" for i in range(7)), *(f"s{i}" for i in range(1, 6)))]
    pairs += [(tone, back) for tone in ("muted", "link", "yes", "no", "open") for back in ("page", "panel")]
    pairs += [("yes", "yes-soft"), ("no", "no-soft"), ("open", "open-soft"), ("muted", "rule")]
    poor = {
        pair: round(contrast(colours[pair[0]], colours[pair[1]]), 2) for pair in pairs if contrast(colours[pair[0]], colours[pair[1]]) < 4.5
    }
    assert not poor


def test_what_a_run_says_is_escaped() -> None:
    attack = '"><script>alert(1)</script><img src=x onerror=alert(1)>'
    model = RECORDS.model.model_copy(update={"source": attack})
    checks = RECORDS.roadtest.checks | {
        "restart": RECORDS.roadtest.checks["restart"].model_copy(update={"reason": attack, "evidence": {attack: attack}})
    }
    frozen = RECORDS.frozen.model_copy(update={"recommended_reason": attack})
    chosen = RECORDS.frozen.provenance.chosen_from
    rungs = tuple(rung.model_copy(update={"name": attack}) if rung.name == chosen else rung for rung in RECORDS.ladder.rungs)
    hostile = replace(
        RECORDS,
        model=model,
        frozen=frozen.model_copy(update={"provenance": frozen.provenance.model_copy(update={"chosen_from": attack})}),
        ladder=RECORDS.ladder.model_copy(update={"rungs": rungs}),
        roadtest=RECORDS.roadtest.model_copy(update={"checks": checks}),
    )
    page = Page(page_of(hostile))
    assert not page.all("script")
    assert not page.all("img")
    assert "alert(1)" in page.text


def test_every_headline_is_followed_by_its_limits() -> None:
    html = page_of()
    items = html.split('<ul class="figures">')[1].split("</ul>")[0].split("<li>")[1:]
    assert len(items) == 7
    for item in items:
        assert re.search(r'class="limit"><strong>(Modelled|Measured|Served)\.</strong>', item)
        assert "Not in it:" in item
        assert "Longest context" in item
    assert "All on transformers 0.1.0, build" in html


def test_strip_shows_every_layer_once() -> None:
    html = page_of()
    strip = html.split('<div class="strip">')[1].split("</div>")[0]
    assert re.findall(r'<th scope="col">(\d+)</th>', strip) == [str(i) for i in range(30)]
    for tensor in ("K", "V"):
        formats = re.findall(rf'aria-label="{tensor} format">{tensor}</th>(.*?)</tr>', strip)
        full = re.findall(r'title="(\w+)"', "".join(formats))
        assert full == [getattr(layer, tensor.lower()) for layer in RECORDS.frozen.layers]


@pytest.mark.parametrize("layers", [1, 2, 80])
def test_models_of_other_depths(layers: int) -> None:
    records = fixture.records(layers)
    html = page_of(records)
    Page(html)
    assert len(html.encode()) < 2**20
    assert "NaN" not in html
    assert "inf" not in re.findall(r'[dxy][12]?="([^"]*)"', html)


def test_a_run_with_little_in_it_still_has_a_page() -> None:
    evaluation = RECORDS.evaluation.model_copy(update={"kl": {}, "kl_reason": {}, "tasks": {}})
    export = RECORDS.export.model_copy(update={"arms": RECORDS.export.arms | {"uniform": None}, "arms_reason": {"uniform": "none fits"}})
    frozen = RECORDS.frozen.model_copy(update={"uniform": None, "uniform_provenance": None, "uniform_reason": "none fits"})
    probe = RECORDS.probe.model_copy(update={"arms": {}})
    roadtest = RECORDS.roadtest.model_copy(update={"checks": {}})
    text = Page(page_of(replace(RECORDS, evaluation=evaluation, export=export, frozen=frozen, probe=probe, roadtest=roadtest))).text
    assert "uniform has no figures: none fits" in text
    assert "No task was compared with native." in text
    missing = RECORDS.roadtest.model_copy(update={"arms": dict.fromkeys(RECORDS.roadtest.arms), "arms_reason": {"map": "did not start"}})
    assert "The map arm has no figures: did not start" in Page(page_of(replace(RECORDS, roadtest=missing))).text
