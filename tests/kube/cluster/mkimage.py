#!/usr/bin/env python3
"""`mkimage.py FILE NAME:TAG FOLDER [ENTRYPOINT…]`: a docker-archive of one layer from a folder, which buildah and containerd read."""

import argparse
import hashlib
import io
import json
import tarfile
from pathlib import Path

EPOCH = "1970-01-01T00:00:00Z"


def layer(folder: Path) -> bytes:
    """The folder as a tar that is the same for the same content."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as tar:
        for path in sorted(folder.iterdir()):
            tar.add(path, arcname=path.name, filter=_anybody)
    return written.getvalue()


def _anybody(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


def configuration(content: bytes, entrypoint: list[str]) -> bytes:
    """What the image says of itself. `history` has an entry for each layer: buildah counts them."""
    path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    found = {
        "architecture": "amd64",
        "os": "linux",
        "created": EPOCH,
        "config": {"Entrypoint": entrypoint or None, "Env": [path], "WorkingDir": "/"},
        "history": [{"created": EPOCH, "created_by": "mkimage.py"}],
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(content).hexdigest()}"]},
    }
    return json.dumps(found).encode()


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("reference")
    parser.add_argument("folder", type=Path)
    parser.add_argument("entrypoint", nargs="*")
    options = parser.parse_args()
    content = layer(options.folder)
    about = configuration(content, options.entrypoint)
    name = f"{hashlib.sha256(about).hexdigest()}.json"
    manifest = [{"Config": name, "RepoTags": [options.reference], "Layers": ["layer.tar"]}]
    with tarfile.open(options.file, "w") as archive:
        for member, data in ((name, about), ("layer.tar", content), ("manifest.json", json.dumps(manifest).encode())):
            entry = tarfile.TarInfo(member)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))


if __name__ == "__main__":
    main()
