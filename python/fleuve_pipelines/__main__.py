"""Runs `pyspark.pipelines.cli` with the additions of this package."""

import sys


def main():
    from fleuve_pipelines import spec_yaml

    spec_yaml.install()
    try:
        from pyspark.pipelines import cli
    except ImportError as missing:
        sys.exit(
            "fleuve: %s has no PySpark with declarative pipelines (%s); install it with: %s -m pip install "
            "pyspark-client==4.1.1" % (sys.executable, missing, sys.executable)
        )
    from fleuve_pipelines import definitions, dlt_names, registry

    registry.install(cli)
    definitions.install()
    dlt_names.install()
    sys.argv[0] = "fleuve pipelines"
    cli.main()


main()
