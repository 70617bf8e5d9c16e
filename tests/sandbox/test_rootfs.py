"""A root archive becomes the folder that bubblewrap shows; its content cannot harm the machine that stores it."""

import io
import stat
import tarfile
from pathlib import Path

import pytest

from sandbox.errors import BuildFailed
from sandbox.rootfs import make_archive, packages, unpack

PROGRAMS = ("bin/sh", "usr/bin/perl")


class Archive:
    """A tar archive in the making; every path in it is relative to its root."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._members: list[tuple[tarfile.TarInfo, bytes]] = []
        for name in PROGRAMS:
            self.file(name, b"#!", mode=0o755)

    def file(self, name: str, content: bytes = b"x", *, mode: int = 0o644) -> "Archive":
        return self._add(name, tarfile.REGTYPE, content, mode=mode)

    def link(self, name: str, target: str, *, hard: bool = False) -> "Archive":
        return self._add(name, tarfile.LNKTYPE if hard else tarfile.SYMTYPE, target=target)

    def node(self, name: str) -> "Archive":
        return self._add(name, tarfile.CHRTYPE)

    def written(self) -> Path:
        with tarfile.open(self.path, "w") as archive:
            for member, content in self._members:
                archive.addfile(member, io.BytesIO(content) if member.isreg() else None)
        return self.path

    def _add(self, name: str, kind: bytes, content: bytes = b"", *, mode: int = 0o755, target: str = "") -> "Archive":
        member = tarfile.TarInfo(name)
        member.type, member.size, member.mode, member.linkname = kind, len(content), mode, target
        self._members.append((member, content))
        return self


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return Archive(tmp_path / "rootfs.tar")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "sandbox"


class TestUnpacking:
    def test_it_has_the_agent_and_its_places(self, archive: Archive, folder: Path) -> None:
        archive.file("etc/passwd", b"somebody:x:1000:1000::/:/bin/sh\n").file("etc/motd", b"Welcome to Debian\n")
        root = unpack(archive.written(), folder)
        assert root == folder / "rootfs"
        assert "agent:x:1000:1000::/home/agent:/bin/sh" in (root / "etc/passwd").read_text()
        assert (root / "etc/motd").readlink() == Path("/run/motd")
        assert (root / "etc/issue").readlink() == Path("/run/issue")
        for place in ("home/agent", "srv", "opt", "usr/local", "var", "run", "tmp", "proc", "dev"):
            assert (root / place).is_dir(), place

    def test_a_new_one_takes_the_place_of_the_old(self, archive: Archive, folder: Path, tmp_path: Path) -> None:
        unpack(archive.file("etc/old").written(), folder)
        root = unpack(Archive(tmp_path / "new.tar").file("etc/new").written(), folder)
        assert (root / "etc/new").exists()
        assert not (root / "etc/old").exists()
        assert sorted(path.name for path in folder.iterdir()) == ["rootfs"]

    def test_links_of_a_root_stay_as_they_are(self, archive: Archive, folder: Path) -> None:
        archive.link("etc/alternatives/awk", "/usr/bin/mawk").link("usr/bin/awk", "/etc/alternatives/awk")
        archive.file("usr/bin/mawk", mode=0o755).link("usr/bin/mawk2", "usr/bin/mawk", hard=True)
        root = unpack(archive.written(), folder)
        assert (root / "usr/bin/awk").readlink() == Path("/etc/alternatives/awk")
        assert (root / "usr/bin/mawk2").stat().st_nlink == 2

    def test_devices_and_set_user_id_bits_stay_behind(self, archive: Archive, folder: Path) -> None:
        archive.file("usr/bin/su", mode=0o4755).node("dev/sda").node("etc/node")
        root = unpack(archive.written(), folder)
        assert stat.S_IMODE((root / "usr/bin/su").stat().st_mode) == 0o755
        assert list((root / "dev").iterdir()) == []
        assert not (root / "etc/node").exists()


class TestHostileArchives:
    @pytest.fixture
    def secret(self, tmp_path: Path) -> Path:
        path = tmp_path / "secret"
        path.write_text("ours")
        return path

    def test_members_that_lead_out_are_refused(self, archive: Archive, folder: Path, secret: Path) -> None:
        archive.file("../../secret", b"theirs")
        with pytest.raises(BuildFailed):
            unpack(archive.written(), folder)
        assert secret.read_text() == "ours"
        assert list(folder.iterdir()) == []

    def test_so_are_members_behind_a_link(self, archive: Archive, folder: Path, secret: Path) -> None:
        archive.link("opt/way", str(secret.parent)).file("opt/way/secret", b"theirs")
        with pytest.raises(BuildFailed):
            unpack(archive.written(), folder)
        assert secret.read_text() == "ours"

    @pytest.mark.parametrize("target", ["../secret", "/etc/hostname"])
    def test_so_are_hard_links_to_the_machines_files(
        self, archive: Archive, folder: Path, secret: Path, target: str
    ) -> None:
        archive.link("srv/copy", target, hard=True)
        with pytest.raises(BuildFailed):
            unpack(archive.written(), folder)
        assert secret.stat().st_nlink == 1

    @pytest.mark.parametrize("name", ["etc", "var", "home"])
    def test_so_are_places_that_are_links(self, archive: Archive, folder: Path, tmp_path: Path, name: str) -> None:
        target = tmp_path / "elsewhere"
        target.mkdir()
        archive.link(name, str(target))
        with pytest.raises(BuildFailed, match="is a link"):
            unpack(archive.written(), folder)
        assert list(target.iterdir()) == []

    def test_an_absolute_name_lands_inside(self, archive: Archive, folder: Path, secret: Path) -> None:
        root = unpack(archive.file(str(secret), b"theirs").written(), folder)
        assert secret.read_text() == "ours"
        assert (root / str(secret).lstrip("/")).read_bytes() == b"theirs"


class TestRefusals:
    def test_a_file_that_is_no_archive(self, tmp_path: Path, folder: Path) -> None:
        path = tmp_path / "rootfs.tar"
        path.write_text("no archive")
        with pytest.raises(BuildFailed, match="rootfs.tar"):
            unpack(path, folder)

    def test_a_root_without_a_shell(self, tmp_path: Path, folder: Path) -> None:
        with tarfile.open(tmp_path / "rootfs.tar", "w"):
            pass
        with pytest.raises(BuildFailed, match="lacks bin/sh and usr/bin/perl"):
            unpack(tmp_path / "rootfs.tar", folder)

    def test_no_mmdebstrap(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(BuildFailed, match="apt install mmdebstrap"):
            make_archive(tmp_path / "rootfs.tar")


def test_the_root_is_made_of_what_the_supervisor_and_the_scenarios_need() -> None:
    assert {"dash", "perl-base", "man-db", "coreutils", "procps"} <= set(packages())
