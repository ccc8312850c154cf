# «缺少课程的软件包 companion 时把它装上，别的都不动。||Installs the course's package companion where it is missing, nothing else.»
import subprocess
import sys
from importlib import invalidate_caches, metadata, util

WHEEL = ""  # «网站上的 notebook 在这里写着它的地址||notebooks from the website hold its address»


def versions():
    present = [n for n in ("numpy", "torch") if util.find_spec(n)]
    return {name: metadata.version(name) for name in present}


if util.find_spec("companion") is None:
    if not WHEEL:
        raise ModuleNotFoundError(
            "«没有装 companion：请在课程的文件夹里运行||companion is missing: in the course's folder run» pip install ."
        )
    before = versions()
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", WHEEL]
    done = subprocess.run(pip, capture_output=True, text=True)
    invalidate_caches()
    if done.returncode or versions() != before:
        raise RuntimeError(
            f"«安装没有成功，或者换掉了||the installation failed or replaced» {before}:\n"
            + done.stdout
            + done.stderr
        )
    print("«已安装 companion，没有变动：||companion is installed; unchanged:»", before)
