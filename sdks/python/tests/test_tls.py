"""A core that speaks TLS, with a certificate that nobody vouches for and that is for another
name."""

from __future__ import annotations

import os
import unittest
from pathlib import Path
from unittest import mock

from wharf_sdk import Client
from wharf_sdk.errors import CoreAway, WharfError

from tests.support import Core, program

TLS = Path(__file__).resolve().parent / "tls"


class OwnCertificate(unittest.TestCase):
    core: Core

    @classmethod
    def setUpClass(cls) -> None:
        program()
        cls.core = Core()
        cls.addClassCleanup(cls.core.close)
        cls.core.home.mkdir(parents=True)
        settings = '[http]\ntls_cert = "%s"\ntls_key = "%s"\n' % (
            TLS / "core.pem",
            TLS / "core.key",
        )
        (cls.core.home / "wharf.toml").write_text(settings, "utf-8")
        cls.core.up()

    def setUp(self) -> None:
        plain = {name: "" for name in os.environ if name.startswith("WHARF_")}
        patched = mock.patch.dict(os.environ, plain)
        patched.start()
        self.addCleanup(patched.stop)
        self.assertTrue(self.core.url.startswith("https://127.0.0.1:"), self.core.url)
        self.token = (self.core.home / "run" / "owner.token").read_text("utf-8").strip()

    def test_the_home_says_whose_certificate_its_core_has(self) -> None:
        with Client(home=str(self.core.home)) as client:
            run = client.run("wharf/echo", {"text": "sealed"})
            self.assertEqual(run.result(), {"text": "sealed"})

    def test_without_the_home_it_is_not_trusted(self) -> None:
        with Client(self.core.url, self.token, home="/nowhere", patience=0) as client:
            with self.assertRaises(CoreAway) as caught:
                client.run("wharf/echo", {"text": "sealed"})
        self.assertIn("certificate", str(caught.exception).lower())

    def test_a_file_may_name_it_and_another_one_does_not(self) -> None:
        with mock.patch.dict(os.environ, WHARF_CA=str(TLS / "core.pem")):
            with Client(self.core.url, self.token, home="/nowhere") as client:
                self.assertTrue(client.run("wharf/echo", {"text": "x"}).succeeded)
        with mock.patch.dict(os.environ, WHARF_CA=str(TLS / "other.pem")):
            with Client(self.core.url, self.token, home="/nowhere", patience=0) as client:
                with self.assertRaises(CoreAway):
                    client.run("wharf/echo", {"text": "x"})
        with mock.patch.dict(os.environ, WHARF_CA=str(TLS / "core.key")):
            with Client(self.core.url, self.token, home="/nowhere") as client:
                with self.assertRaises(WharfError) as caught:
                    client.run("wharf/echo", {"text": "x"})
        self.assertEqual(caught.exception.code, "config.invalid")

    def test_the_owners_token_goes_to_the_homes_own_core_only(self) -> None:
        with Client("https://127.0.0.1:1", home=str(self.core.home)) as client:
            with self.assertRaises(WharfError) as caught:
                client.run("wharf/echo", {"text": "x"})
        self.assertEqual(caught.exception.code, "auth.required")
