"""
The settings of a security.toml, and the errors of an invalid one.
"""

from pathlib import Path

import pytest

from kgateway.broker.seaweed.security.security_toml import BadSecurity, SecurityFile, SigningKey, Tls

_MUTUAL = """
[grpc]
ca = "ca.pem"
[grpc.client]
cert = "/etc/client.pem"
key = "/etc/client.key"
"""


def file(folder: Path, text: str, **environment: str) -> SecurityFile:
    path = folder / "security.toml"
    path.write_text(text)
    return SecurityFile(path, environment)


def all_of(folder: Path, text: str) -> tuple[Tls | None, Tls | None, SigningKey | None]:
    """
    All settings of a file with this text.
    """
    found = file(folder, text)
    return found.grpc(), found.https(), found.signing_key("jwt.signing")


def test_an_empty_file_secures_nothing(tmp_path: Path) -> None:
    empty = '[grpc]\nca = ""\n[https.client]\nenabled = false\n[jwt.signing]\nkey = ""'
    assert all_of(tmp_path, empty) == (None, None, None)


def test_grpc_has_certificates_on_both_sides(tmp_path: Path) -> None:
    """
    Paths are relative to the file, and each setting says where it was named.
    """
    tls = file(tmp_path, _MUTUAL).grpc()
    assert tls
    assert tls.authorities
    assert tls.identity
    assert str(tls.authorities) == f"{tmp_path}/ca.pem (`ca` under [grpc] of {tmp_path}/security.toml)"
    assert [str(part.path) for part in tls.identity] == ["/etc/client.pem", "/etc/client.key"]
    assert not tls.checks_names


def test_who_we_are_is_said_for_gateways_first(tmp_path: Path) -> None:
    """
    The section of gateways counts, and in it the certificate as a client, if that differs from the server's.
    """
    gateway = '[grpc.mq]\ncert = "mq.pem"\nkey = "mq.key"\n'
    as_client = 'client_cert = "out.pem"\nclient_key = "out.key"\n'
    for text, name in ((_MUTUAL + gateway, "mq"), (_MUTUAL + gateway + as_client, "out")):
        tls = file(tmp_path, text).grpc()
        assert tls
        assert tls.identity
        assert [part.path for part in tls.identity] == [tmp_path / f"{name}.pem", tmp_path / f"{name}.key"]


def test_https_checks_names_unless_it_says_otherwise(tmp_path: Path) -> None:
    """
    Without checks no authority is needed.
    """
    tls = file(tmp_path, '[https.client]\nenabled = true\nca = "ca.pem"').https()
    assert tls
    assert tls.authorities
    assert (tls.authorities.path, tls.identity, tls.checks_names) == (tmp_path / "ca.pem", None, True)
    blind = file(tmp_path, '[https.client]\nenabled = true\nca = "ca.pem"\ninsecure_skip_verify = true').https()
    assert blind
    assert (blind.authorities, blind.checks_names) == (None, False)


def test_tokens_expire_after_ten_seconds_unless_it_says_otherwise(tmp_path: Path) -> None:
    """
    Zero and negative numbers mean never.
    """
    for given, expires_s in (("", 10), ("= 60", 60), ("= 0", 0), ("= -1", 0)):
        line = f"expires_after_seconds {given}" if given else ""
        key = file(tmp_path, f'[jwt.filer_signing.read]\nkey = "secret"\n{line}').signing_key("jwt.filer_signing.read")
        place = f"`key` under [jwt.filer_signing.read] of {tmp_path}/security.toml"
        assert key == SigningKey(b"secret", expires_s, place)


def test_the_environment_goes_before_the_file(tmp_path: Path) -> None:
    """
    The variables have the names that SeaweedFS's own programs use.
    """
    environment = {"WEED_JWT_FILER_SIGNING_KEY": "new", "WEED_GRPC_CA": "/new.pem", "WEED_GRPC_CLIENT_CERT": ""}
    found = file(tmp_path, f'{_MUTUAL}[jwt.filer_signing]\nkey = "old"', **environment)
    key, tls = found.signing_key("jwt.filer_signing"), found.grpc()
    assert key
    assert tls
    assert tls.authorities
    assert tls.identity
    assert (key.secret, str(tls.authorities.path)) == (b"new", "/new.pem")
    assert str(tls.identity.certificate.path) == "/etc/client.pem"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[grpc\n", "security.toml is not TOML: "),
        ('[grpc]\nca = "ca.pem"', r"neither \[grpc.mq\] nor \[grpc.client\] has `cert` and `key`"),
        ('[grpc.client]\ncert = "c"\nkey = "k"', r"there is no `ca` under \[grpc\], but .*/c \(`cert` under .* given"),
        ('[grpc.client]\ncert = "c"', r"there is no `key` under \[grpc.client\], but `cert` is given"),
        ('[grpc.mq]\nkey = "k"', r"there is no `cert` under \[grpc.mq\], but `key` is given"),
        ("[https.client]\nenabled = true", r"there is no `ca` under \[https.client\], but `enabled` is true"),
        (
            '[https.client]\nenabled = "perhaps"',
            r"'perhaps' is neither true nor false: `enabled` under \[https.client\]",
        ),
        (
            '[jwt.signing]\nkey = "k"\nexpires_after_seconds = "soon"',
            r"'soon' is not a number of seconds: `expires_after_seconds` under \[jwt.signing\]",
        ),
    ],
)
def test_what_will_not_do_is_reported(tmp_path: Path, text: str, problem: str) -> None:
    """
    The error names the file, the section and the setting.
    """
    with pytest.raises(BadSecurity, match=problem) as told:
        all_of(tmp_path, text)
    assert str(tmp_path / "security.toml") in str(told.value)


def test_a_file_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with pytest.raises(BadSecurity, match=r"none\.toml cannot be read: No such file"):
        SecurityFile(tmp_path / "none.toml")
