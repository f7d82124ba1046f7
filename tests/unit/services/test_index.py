"""The page that says what is there."""

import re
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any

from ottla.http.application import ApplicationOptions
from ottla.services.cluster import ClusterAnswer
from ottla.services.index.application import build_index
from ottla.services.service import ServiceContext
from ottla.services.table import SERVICES
from ottla.world.clock import RealClock
from ottla.world.entropy import SeededEntropy
from tests.unit.http.asgi import ask

BROKERS = [SimpleNamespace(id=1, host="10.0.0.1", port=9092)]
CLUSTER = ClusterAnswer(SimpleNamespace(id="abc", controller=1, brokers=BROKERS), None)  # type: ignore[arg-type]
ADDRESSES = {"index": "http://127.0.0.1:8080", "registry": "http://127.0.0.1:8081"}


class Cluster:
    def __init__(self, answer: ClusterAnswer) -> None:
        self.answer = answer

    async def ask(self) -> ClusterAnswer:
        return self.answer


def index(answer: ClusterAnswer = CLUSTER, bootstrap: str = "127.0.0.1:9092") -> Any:
    options = ApplicationOptions(RealClock(), SeededEntropy(1))
    return build_index(ServiceContext(bootstrap, Cluster(answer), options, ADDRESSES))  # type: ignore[arg-type]


class Page(HTMLParser):
    """What a browser would make of it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words += data

    def values(self, name: str) -> list[str | None]:
        return [attributes[name] for _, attributes in self.tags if name in attributes]


def test_it_says_what_there_is() -> None:
    page = Page(ask(index(), "GET", "/", headers={"accept": "text/html,*/*;q=0.8"}).body.decode())
    for word in ("127.0.0.1:9092", "abc", "10.0.0.1:9092", "registry", "The cluster answers"):
        assert word in page.words
    assert {"http://127.0.0.1:8081/", "http://127.0.0.1:8081/ready"} <= set(page.values("href"))


def test_programs_get_json() -> None:
    answer = ask(index(), "GET", "/", headers={"accept": "application/json"})
    assert answer.json["services"] == ADDRESSES
    assert answer.json["cluster"]["brokers"] == [{"id": 1, "address": "10.0.0.1:9092"}]


def test_it_is_shown_though_the_cluster_does_not_answer() -> None:
    answer = ask(index(ClusterAnswer(None, "<b> & nobody")), "GET", "/")
    assert answer.status == 200
    assert b"&lt;b&gt; &amp; nobody" in answer.body and b"does not answer" in answer.body


def test_nothing_from_elsewhere_is_loaded_or_run() -> None:
    answer = ask(index(bootstrap='<script>alert("x")</script>$facts'), "GET", "/")
    assert b"<script" not in answer.body
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
    page = Page(answer.body.decode())
    loaded = [attributes.get("href") for tag, attributes in page.tags if tag == "link"] + page.values("src")
    assert loaded == ["/style.css"]
    assert not page.values("style") and "style" not in {tag for tag, _ in page.tags}
    style = ask(index(), "GET", "/style.css")
    assert style.headers["content-type"].startswith("text/css")
    assert b"url(" not in style.body and b"@import" not in style.body


def test_it_can_be_read_by_everybody() -> None:
    page = Page(ask(index(), "GET", "/").body.decode())
    tags = [tag for tag, _ in page.tags]
    assert ("html", {"lang": "en"}) in page.tags
    assert tags.count("h1") == 1 and tags.count("main") == 1 and "title" in tags
    ids = set(page.values("id"))
    assert all(attributes.get("aria-labelledby") in ids for tag, attributes in page.tags if tag == "table")
    assert all(attributes.get("scope") for tag, attributes in page.tags if tag == "th")
    links = [
        attributes.get("aria-label")
        for tag, attributes in page.tags
        if tag == "a" and "aria-label" in attributes
    ]
    assert len(set(links)) == len(links) == 6


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_there_is_contrast_in_both_schemes() -> None:
    style = ask(index(), "GET", "/style.css").body.decode()
    blocks = re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    schemes = [dict(re.findall(r"--(\w+): (#\w{6})", block)) for block in blocks]
    assert len(schemes) == 2
    for colours in schemes:
        for name in ("text", "link", "problem"):
            light, dark = sorted((_luminance(colours[name]), _luminance(colours["ground"])), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5, name


def test_services_have_names_and_ports_of_their_own() -> None:
    assert (
        len({service.name for service in SERVICES})
        == len({service.port for service in SERVICES})
        == len(SERVICES)
    )
    assert ("index", 8080) in {(service.name, service.port) for service in SERVICES}
