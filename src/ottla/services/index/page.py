"""The words of the index page. Whatever comes from elsewhere is escaped."""

from collections.abc import Iterable, Mapping
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from ottla import __version__
from ottla.services.cluster import ClusterAnswer

_PAGES = ("health", "ready", "metrics")


def summary(bootstrap: str, answer: ClusterAnswer, addresses: Mapping[str, str]) -> dict[str, Any]:
    """Return the facts of the page, as JSON shows them."""
    description = answer.description
    return {
        "version": __version__,
        "bootstrap": bootstrap,
        "cluster": None
        if description is None
        else {
            "id": description.id,
            "controller": description.controller,
            "brokers": [
                {"id": broker.id, "address": f"{broker.host}:{broker.port}"} for broker in description.brokers
            ],
        },
        "problem": answer.problem,
        "services": dict(addresses),
    }


def page(facts: Mapping[str, Any]) -> str:
    """Return the page as HTML."""
    cluster = facts["cluster"]
    rows = [
        ("Bootstrap address", f"<code>{escape(facts['bootstrap'])}</code>"),
        ("Ottla", escape(facts["version"])),
    ]
    if cluster is None:
        state = f'<p class="problem" role="status">The cluster does not answer. {escape(facts["problem"] or "")}</p>'
    else:
        state = '<p role="status">The cluster answers.</p>'
        rows.append(("Cluster id", f"<code>{escape(cluster['id'])}</code>"))
        brokers = (f"{each['id']} at <code>{escape(each['address'])}</code>" for each in cluster["brokers"])
        rows.append(("Brokers", ", ".join(brokers)))
    template = files("ottla.services.index").joinpath("page.html").read_text(encoding="utf-8")
    return Template(template).substitute(
        state=state, facts="\n".join(_facts(rows)), services="\n".join(_services(facts["services"]))
    )


def _facts(rows: Iterable[tuple[str, str]]) -> Iterable[str]:
    for name, value in rows:
        yield f'      <tr><th scope="row">{name}</th><td>{value}</td></tr>'


def _services(addresses: Mapping[str, str]) -> Iterable[str]:
    for name, address in addresses.items():
        shown, link = escape(name), escape(address)
        pages = " ".join(
            f'<a href="{link}/{each}" aria-label="{each} of {shown}">{each}</a>' for each in _PAGES
        )
        yield f'      <tr><th scope="row">{shown}</th><td><a href="{link}/">{link}</a></td><td>{pages}</td></tr>'
