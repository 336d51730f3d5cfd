import pytest

import system


def test_a_package_that_nobody_listed_is_a_mistake():
    with pytest.raises(LookupError, match="no package is called nonesuch"):
        system.is_installed("nonesuch")


def test_a_missing_package_skips(monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setattr(system, "is_installed", lambda package: False)
    with pytest.raises(pytest.skip.Exception, match="package chromium is missing"):
        system.require("chromium")


def test_under_ci_a_missing_package_fails(monkeypatch):
    monkeypatch.setenv("CI", "true")
    monkeypatch.setattr(system, "is_installed", lambda package: False)
    with pytest.raises(pytest.fail.Exception, match="package chromium is missing"):
        system.require("chromium")


def test_what_is_there_is_no_hindrance(monkeypatch):
    monkeypatch.setattr(system, "is_installed", lambda package: True)
    system.require("chromium")
