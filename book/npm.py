"""Packages of npm, pinned, unpacked once into _build/npm: for the build only, none of them is in git."""

import shutil
import subprocess

from book import ROOT


def unpacked(name, version):
    """Return the folder of a package of npm, fetched on the first call; ValueError says what is missing."""
    home = ROOT / "_build" / "npm" / f"{name}-{version}"
    if home.exists():
        return home / "package"
    if not shutil.which("npm"):
        raise ValueError(
            f"npm is missing (it fetches {name}): install it with 'apt-get install npm' or from nodejs.org"
        )
    home.parent.mkdir(parents=True, exist_ok=True)
    command = ["npm", "pack", f"{name}@{version}", "--silent"]
    try:
        subprocess.run(command, cwd=home.parent, check=True, capture_output=True, timeout=300)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        raise ValueError(f"npm could not fetch {name}: {error}; check the network, then run again") from None
    fresh = home.with_name(f"{home.name}.new")
    shutil.unpack_archive(home.with_name(f"{home.name}.tgz"), fresh)
    fresh.rename(home)
    return home / "package"
