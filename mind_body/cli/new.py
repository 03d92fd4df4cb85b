"""Wiring: `mind new`: asks what is not told, checks what can be checked, writes what is missing."""

import re
import sys
from collections.abc import Callable
from typing import IO, Any, Literal

import click
import trio

from mind_body.cli.account import Account, check_account, register_account
from mind_body.cli.create import NewMind, check_name, create_mind, secret_path, write_new_secret
from mind_body.clock import now_ms, render_utc
from mind_body.config import environment, parse_settings
from mind_body.errors import ConfigError, MatrixLimited, MatrixUnreachable
from mind_body.home import MATRIX, MODEL, Home
from mind_body.host.manager import hand_over, start_mind
from mind_body.ids import new_secret
from mind_body.settings import MindConfig

_file = click.File("r", encoding="utf-8")


@click.command()
@click.argument("name")
@click.option("--homeserver", metavar="URL", help="Her homeserver's client API, https://…")
@click.option("--user", metavar="ID", help="Her account, @name:server.")
@click.option("--password-file", type=_file, metavar="F", help="Holds her password ('-' for stdin).")
@click.option("--token-file", type=_file, metavar="F", help="Holds an access token instead.")
@click.option("--register-secret-file", type=_file, metavar="F", help="Synapse's registration_shared_secret: makes the account.")
@click.option("--provider", type=click.Choice(["local", "openai", "claude"]), help="Whose answers she speaks.")
@click.option("--base-url", metavar="URL", help="The model's server, for openai up to and including /v1.")
@click.option("--model", metavar="NAME", help="The provider's name for the model.")
@click.option("--credential", type=click.Choice(["none", "api-key", "oauth-token"]), help="What --model-key-file holds.")
@click.option("--model-key-file", type=_file, metavar="F", help="Holds the model's key.")
@click.option("--operator", "operators", multiple=True, metavar="ID", help="A Matrix user who operates her; may be repeated.")
@click.option("--persona-file", type=_file, metavar="F", help="Her character; otherwise a text to be edited.")
@click.option("--release", is_flag=True, help="Release her brake at once; otherwise she is held until you do.")
@click.option("--no-start", is_flag=True, help="Under systemd: leave her units as they are.")
@click.option("--no-input", is_flag=True, help="Ask nothing: what is needed and not told is an error.")
@click.pass_obj
def new(home: Home, /, name: str, **options: Any) -> None:
    """Make a Mind: its configuration, character, credentials, brake and dial, and its empty memory.

    Never overwrites anything. Where the homeserver answers, her login is tried before a file is written. Secrets are read from
    files or asked for, never taken from the command line, and are kept in credentials/, readable by nobody else.

    Without --home her files are the host's, as `mind install` prepared it, and her units are started.
    """
    check_name(home, name)
    _check_host(home)
    asked = _Asked(name, options)
    values = asked.settings()
    _check(values)
    login, secret = asked.secret()
    account = Account(values["matrix"]["homeserver"], values["matrix"]["user"], login, secret)
    _prove(home, name, account, _read(options["register_secret_file"]))
    key = asked.model_key()
    secrets = {f"matrix-{login}": secret} | ({"model-key": key} if key else {})
    persona = _read(options["persona_file"]) or ""
    plan = NewMind(name, values, secrets, persona, released=options["release"], by="mind new")
    for path in create_mind(home, plan, render_utc(now_ms())):
        click.echo(f"{path} was there and is kept.")
    _tell(home, name, **{word: options[word] for word in ("release", "no_start")}, own_persona=bool(persona))
    if home.root is None and not options["no_start"]:
        hand_over({MATRIX} | ({MODEL} if key else set()))
        words = "are started" if start_mind(name) else "start at the next boot"
        click.echo(f"Her units {words}: `systemctl status 'mind*@{name}*'`")


class _Asked:
    """The answers: an option where it was given, a question where somebody can answer, else an error that names the option."""

    def __init__(self, name: str, options: dict[str, Any]) -> None:
        self._name = name
        self._options = options
        self._may_ask = not options["no_input"] and sys.stdin.isatty()

    def settings(self) -> dict[str, Any]:
        homeserver = self._text("homeserver", "Homeserver (https://…)", _homeserver)
        user = self._text("user", f"Her account (@{self._name}:server)", _user)
        operators = list(self._options["operators"])
        if not operators and self._may_ask:
            question = "Who operates her (Matrix ids with spaces between, or nobody)"
            operators = click.prompt(question, default="", show_default=False, value_proc=_users)
        login = "token" if self._options["token_file"] else "password"
        matrix = {"homeserver": homeserver, "user": user, "login": login}
        return {"matrix": matrix, "people": {"operators": operators}, "model": self._model()}

    def secret(self) -> tuple[Literal["password", "token"], str]:
        if self._options["token_file"]:
            return "token", _told(self._options["token_file"])
        if self._options["password_file"]:
            return "password", _told(self._options["password_file"])
        if self._options["register_secret_file"]:
            return "password", new_secret()
        if self._may_ask:
            return "password", click.prompt("Her password", hide_input=True)
        raise click.UsageError("her secret is missing: --password-file, --token-file or --register-secret-file")

    def model_key(self) -> str | None:
        return _told(self._options["model_key_file"]) if self._options["model_key_file"] else None

    def _model(self) -> dict[str, Any]:
        provider = self._options["provider"]
        if provider is None and self._may_ask:
            provider = click.prompt("Model", type=click.Choice(["local", "openai", "claude"]), default="local")
        model: dict[str, Any] = {"provider": provider or "local"}
        if model["provider"] == "openai":
            model["base_url"] = self._text("base_url", "The model's server, up to and including /v1")
            model["model"] = self._options["model"] or (click.prompt("Model name", default="") if self._may_ask else "")
        model |= {key: value for key in ("base_url", "model") if (value := self._options[key])}
        if self._options["model_key_file"]:
            model["credential"] = self._options["credential"] or "api-key"
        return model

    def _text(self, key: str, question: str, check: Callable[[str], str] = str) -> str:
        if self._options[key]:
            return check(self._options[key])
        if self._may_ask:
            return str(click.prompt(question, value_proc=check))
        raise click.UsageError(f"--{key.replace('_', '-')} is missing, and there is nobody to ask")


def _homeserver(text: str) -> str:
    address = text.strip() if "://" in text else f"https://{text.strip()}"
    if not re.fullmatch(r"https?://[^\s/]+\S*", address):
        raise click.UsageError(f"'{text}' is not a homeserver's address: https:// and where its client API is")
    return address.rstrip("/")


def _user(text: str) -> str:
    if not re.fullmatch(r"@[^:\s]+:\S+", text.strip()):
        raise click.UsageError(f"'{text}' is not a full Matrix id: @name:server")
    return text.strip()


def _users(text: str) -> list[str]:
    return [_user(word) for word in text.split()]


def _check(values: dict[str, Any]) -> None:
    try:
        parse_settings(MindConfig, values, "these settings")
    except ConfigError as error:
        raise click.UsageError(str(error)) from error


def _prove(home: Home, name: str, account: Account, registration_secret: str | None) -> None:
    """Register, or try the login; a homeserver that does not answer is said, and is fatal only to a registration."""
    if registration_secret is not None:
        # The password is on disk before the account exists: it is made here and nobody else knows it.
        write_new_secret(home, name, "matrix-password", account.secret)
        try:
            trio.run(register_account, account, registration_secret, name.capitalize())
        except BaseException:
            secret_path(home, name, "matrix-password").unlink()
            raise
        click.echo(f"{account.user} is registered.")
        return
    try:
        trio.run(check_account, account)
    except (MatrixUnreachable, MatrixLimited) as error:
        click.echo(f"Her login could not be tried now ({error}); `mind doctor` tries it again.", err=True)
    else:
        click.echo(f"{account.user} can log in.")


def _check_host(home: Home) -> None:
    """Under systemd there are directories with owners, which `mind install` makes."""
    if home.root is None and not home.minds_dir.is_dir():
        raise ConfigError(f"{home.minds_dir} is not there: `mind install` makes it; or name a home directory with --home DIR")


def _tell(home: Home, name: str, *, release: bool, no_start: bool, own_persona: bool) -> None:
    click.echo(f"{name} is made: {home.mind_file(name)}")
    if not own_persona:
        click.echo(f"Her character is a first sketch: write who she is into {home.persona_file(name)}.")
    at = f"--home {home.root} " if home.root is not None and not environment.get("MIND_HOME") else ""
    if not release:
        click.echo(f"She is held until you release her: `mind {at}brake release {name}`")
    if home.root is not None:
        click.echo(f"Run her organs, in the foreground: `mind {at}up`")
    elif no_start:
        click.echo(f"Start her: `systemctl try-restart mind-mouth mind-lease; systemctl enable --now mind@{name}.target`")


def _told(file: IO[str]) -> str:
    text = file.read().strip()
    if not text:
        raise click.UsageError(f"{file.name} is empty")
    return text


def _read(file: IO[str] | None) -> str | None:
    return None if file is None else _told(file)
