"""`ottla completion`: a script that teaches a shell the words of this command line."""

from ottla.cli.syntax.parser import Commands, command

EXAMPLES = """  eval "$(ottla completion bash)"                                  # in ~/.bashrc
  eval "$(ottla completion zsh)"                                   # in ~/.zshrc
  ottla completion fish > ~/.config/fish/completions/ottla.fish
"""


def add_completion(commands: Commands, name: str, help: str) -> None:
    """Add `ottla completion`."""
    this = command(
        commands,
        name,
        help,
        "ottla.cli.completion.scripts:print_script",
        examples=EXAMPLES,
        cluster=False,
    )
    this.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell")
