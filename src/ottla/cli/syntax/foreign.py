"""What somebody means who names an option that a command does not have: Kafka's word for it, or a misspelt one."""

import argparse

# Options of Kafka's tools, and those of ours that do the same; what comes first and is there is named.
KAFKA = {
    "--bootstrap-server": ("-b",),
    "--bootstrap-servers": ("-b",),
    "--broker-list": ("-b",),
    "--brokers": ("-b",),
    "--replication-factor": ("--replication",),
    "--replicas": ("--replication",),
    "--from-beginning": ("--from start",),
    "--offset": ("--from",),
    "--max-messages": ("--count",),
    "--messages": ("--count", "--records"),
    "--num-records": ("--records",),
    "--num-messages": ("--records",),
    "--record-size": ("--size",),
    "--message-size": ("--size",),
    "--throughput": ("--rate",),
    "--timeout-ms": ("--idle",),
    "--consumer-property": ("-X",),
    "--producer-property": ("-X",),
    "--producer-props": ("-X",),
    "--command-property": ("-X",),
    "--property": ("--key-separator", "-X"),
    "--command-config": ("--profile",),
    "--consumer.config": ("--profile",),
    "--producer.config": ("--profile",),
    "--compression-codec": ("--compression",),
    "--compression-type": ("--compression",),
    "--request-required-acks": ("--acks",),
    "--isolation-level": ("--read-committed",),
    "--include": ("--regex",),
    "--whitelist": ("--regex",),
    "--add-config": ("--config",),
    "--delete-config": ("--unset",),
    "--print-data-log": ("--values",),
    "--deep-iteration": ("--records",),
    "--execute": ("--yes",),
    "--to-earliest": ("--to start",),
    "--to-latest": ("--to end",),
    "--to-offset": ("--to",),
    "--to-datetime": ("--to @TIME",),
    "--shift-by": ("--shift",),
    "--all-topics": ("--all",),
}
# Kafka's tools name with an option what stands for itself here.
NAMES = {
    "--topic": ("topic", "topics"),
    "--topics": ("topics",),
    "--group": ("group", "groups"),
    "--entity-name": ("resource",),
    "--entity-type": ("resource",),
    "--files": ("paths",),
    "--reassignment-json-file": ("plan",),
}


def meant(parser: argparse.ArgumentParser, name: str) -> str:
    """Return a question that names what is probably meant; nothing where no option is near."""
    options = parser._option_string_actions
    for each in KAFKA.get(name, ()):
        if each.split()[0] in options:
            return f"did you mean {each}?"
    for action in parser._actions:
        if not action.option_strings and action.dest in NAMES.get(name, ()):
            return f"it stands without an option: {parser.prog} {action.metavar}"
        if isinstance(action, argparse._SubParsersAction) and name[2:] in action.choices:
            return f"did you mean {parser.prog} {name[2:]}?"
    from difflib import get_close_matches

    near = get_close_matches(name, [each for each in options if each.startswith("--")], n=1)
    return f"did you mean {near[0]}?" if near else ""
