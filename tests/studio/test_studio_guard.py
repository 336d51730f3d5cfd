"""Nobody but the browser that was given the address can use the studio."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlencode

import pytest
from running import in_process, write_table

from pegsynth.errors import ParameterError
from pegsynth.studio.pages import STEPS
from pegsynth.studio.server import serve


@pytest.fixture(scope="module")
def entered(tmp_path_factory):
    with in_process(write_table(tmp_path_factory.mktemp("project"))) as client:
        yield client.enter()


@pytest.fixture
def client(entered):
    return replace(entered, cookie="")


PATHS = ["/", *(f"/{step}" for step in STEPS), "/job", "/codebook/0", "/static/studio.js"]


@pytest.mark.parametrize("path", PATHS)
def test_without_the_cookie_there_is_nothing(client, path):
    """A token that was used says as little as none."""
    answers = [
        client.get(asked)
        for asked in (path, f"{path}?token=wrong", f"{path}?token={client.guard.token}")
    ]
    assert {answer.status for answer in answers} == {403}
    assert {answer.text for answer in answers} == {answers[0].text}
    assert "start it again" in answers[0].text
    assert "stays" not in answers[0].text


@pytest.mark.parametrize("path", PATHS)
def test_with_it_every_page_answers_under_a_strict_policy(entered, path):
    answer = entered.get(path)
    assert answer.status in (200, 303)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["cache-control"] == "no-store"
    assert "access-control-allow-origin" not in answer.headers


def test_another_name_for_this_machine_is_refused(entered):
    """Somebody's name that points to 127.0.0.1 would let their page read ours."""
    answer = entered.get("/table", Host="evil.example:8000")
    assert answer.status == 403


def posted(client, path, fields, **headers):
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    return client.ask("POST", path, urlencode(fields).encode(), {**kind, **headers})


@pytest.mark.parametrize(
    "headers", [{}, {"Origin": "http://evil.example"}, {"Origin": "null"}], ids=str
)
def test_forms_of_other_pages_are_refused(entered, headers):
    fields = {"form_token": entered.form_token, "what": "unit"}
    assert posted(entered, "/codebook", fields, **headers).status == 403


def test_a_form_needs_its_own_token(entered):
    for told in ({}, {"form_token": "wrong"}, {"form_token": entered.guard.token}):
        answer = posted(entered, "/plan", told, Origin=f"http://{entered.host}")
        assert answer.status == 403


def test_no_path_leads_out_of_the_releases(entered):
    for name in ("..", "%2e%2e", "..%2f..%2fetc", "none", "stays.csv"):
        assert entered.get(f"/report/{name}").status == 404
        assert entered.get(f"/download/{name}").status == 404
        assert entered.get(f"/sign-off/{name}").status == 404
        assert entered.get(f"/comparison/{name}").status == 404


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::"])
def test_other_machines_need_a_flag_that_says_so(tmp_path, host):
    with pytest.raises(ParameterError, match="--anyone-on-the-network"):
        serve(tmp_path / "p", host=host, browser=False, say=print)
    assert not (tmp_path / "p").exists()


def test_a_host_is_an_address(tmp_path):
    with pytest.raises(ParameterError, match="--host is an address"):
        serve(tmp_path, host="example", browser=False, say=print)


def test_a_port_that_is_taken_is_said(tmp_path):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ParameterError, match=f"127.0.0.1:{port}: .*; choose another"):
            serve(tmp_path, port=port, browser=False, say=print)
