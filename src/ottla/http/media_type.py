"""Media types: whether a body is of a kind that is read here, and which kind the client wants back."""

from ottla.http.error import HttpError

_TYPES_MAX = 100


def check_content(content_type: str, consumes: tuple[str, ...]) -> None:
    """Refuse a body of another kind with 415; one whose kind nobody named is taken."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind and consumes and kind not in consumes:
        raise HttpError(
            415,
            f"a body of type {kind} is not read here; send {consumes[0]}",
            headers={"accept": ", ".join(consumes)},
        )


def choose(accept: str, produces: tuple[str, ...]) -> str:
    """Return the kind of answer that the client likes best, or 406; "" where the route does not say what it gives."""
    if not produces:
        return ""
    wanted = _wanted(accept)
    if not wanted:
        return produces[0]
    best = max(produces, key=lambda kind: _liking(kind, wanted))
    if _liking(best, wanted) <= 0:
        raise HttpError(406, f"there is {', '.join(produces)}")
    return best


def _wanted(accept: str) -> dict[str, float]:
    """The kinds in an Accept header and how much each is liked; what cannot be read is passed over."""
    wanted: dict[str, float] = {}
    for part in accept.lower().split(",")[:_TYPES_MAX]:
        kind, *parameters = (each.strip() for each in part.split(";"))
        if kind.count("/") != 1:
            continue
        liking = 1.0
        for parameter in parameters:
            name, _, value = parameter.partition("=")
            if name.strip() == "q":
                try:
                    liking = min(1.0, max(0.0, float(value)))
                except ValueError:
                    liking = 0.0
        wanted[kind] = liking
    return wanted


def _liking(kind: str, wanted: dict[str, float]) -> float:
    """How much a kind is liked: the closest entry counts."""
    for entry in (kind, f"{kind.partition('/')[0]}/*", "*/*"):
        if entry in wanted:
            return wanted[entry]
    return 0.0
