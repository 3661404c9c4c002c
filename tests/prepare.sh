# Sourced by every script of rows: installs and builds what it measures, so that what is measured is what the sources say now. With
# nothing to do this takes seconds; in a run of tests/run.sh, which has done it, none.
if [[ -z ${FUSION_TEST_RESULTS:-} ]]; then
  deploy/install_deps.sh --tests
  cmake --preset release >/dev/null
  cmake --build --preset release >&2
fi
