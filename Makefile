# All commands for contributors. `make help` lists them.
SHELL := /bin/bash
GO    ?= go
NICE  ?=
# Packages of the main module; infra, scripts/goaws, scripts/lint and scripts/clients/goclient
# are separate modules.
PKG   ?= ./...

.PHONY: help run console test raced plain quick unit sequential property exhaustive race-packages race-local programs standard lint contract release agents quickstart vulncheck outdated cross fuzz arm clients bench bench-peers bench-admin bench-mcp bench-analytics matrix prices findings conformance senders load localstack synth infra-test lambdas deps clean

help: ## list the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk 'BEGIN{FS=":.*## "}{printf "  make %-12s %s\n",$$1,$$2}'

run: ## start the gateway on this machine
	$(GO) run ./local

console: ## build the web console from functions/console/web; the result is committed
	$(GO) run ./scripts/console

deps: node_modules/.stamp ## install what the tests need from npm, pinned in lock files

node_modules/.stamp: scripts/testdeps/package-lock.json scripts/clients/package-lock.json scripts/agents/package-lock.json scripts/mcp/package-lock.json scripts/sql/package-lock.json
	npm ci --silent --no-audit --no-fund --prefix scripts/testdeps
	npm ci --silent --no-audit --no-fund --prefix scripts/clients
	npm ci --silent --no-audit --no-fund --ignore-scripts --prefix scripts/agents
	npm ci --silent --no-audit --no-fund --ignore-scripts --prefix scripts/mcp
	npm ci --silent --no-audit --no-fund --ignore-scripts --prefix scripts/sql
	@mkdir -p node_modules && touch $@

# Timeouts of the tests of one package. No test waits for a fixed time, so the timeouts only
# end tests that hang, and allow for slow machines. Tests of ./local, of programs and of
# templates take the longest by far.
race-local programs infra-test: TIMEOUT := $(or $(TIMEOUT),40m)
TIMEOUT ?= 20m

# Two lanes run in parallel: they share no compiled packages, and each has tests that wait
# for programs that they started. One run reports every failure.
test: deps ## everything that CI runs
	@$(MAKE) -k --no-print-directory raced & lane=$$!; $(MAKE) -k --no-print-directory plain; code=$$?; wait $$lane && exit $$code

raced: race-packages race-local programs

plain: lint contract sequential property exhaustive standard cross fuzz infra-test

unit: deps sequential property exhaustive race-packages race-local programs ## all tests of the main module, with the race detector where there is concurrency

# All builds without the race detector use the same flags, also in tests, so that each package
# is compiled once: as for Lambda, without C and without local paths. The binaries have no
# debug tables, which saves a third of the link time. A higher GOGC of the compiler saves a
# sixth of its work. Flags in the environment are kept and come first.
TESTS = test raced plain unit sequential property exhaustive race-packages race-local programs quick standard lint contract cross fuzz infra-test
$(TESTS): export GOFLAGS := -trimpath -ldflags=-s '-toolexec=env GOGC=400' $(shell $(GO) env GOFLAGS)
$(TESTS): export CGO_ENABLED := 0

# The detector needs C. SQLite, which was translated from C, is built without it: it runs in
# one thread under a lock that is checked, and would take most of the time.
RACE = CGO_ENABLED=1 $(NICE) $(GO) test -vet=off -race -gcflags=modernc.org/sqlite/lib=-race=false -gcflags=modernc.org/libc/...=-race=false -timeout $(TIMEOUT)
# Vet has run in lint.
PLAIN = $(NICE) $(GO) test -vet=off -timeout $(TIMEOUT)

# Packages whose tests build programs of this project: go test does not know the sources of
# those programs, and would use a cached result after they changed.
PROGRAMS = ^gateway/(local|scripts)(/|$$)
UNRACED = sed -n 's|^[a-z]|gateway/&|p' scripts/unraced.txt
# A directive in the comment of a test, such as //lane:property, moves it to another lane than
# its package; a test of shared/ checks the directives.
# property: many hundred iterations (a crash at each write, two implementations compared,
# measured memory, hostile bodies for every route). exhaustive: every route, client or host, one request at a time. Other tests run the code of
# both under the race detector, which makes these five times slower.
# standard: wire, streams, faults, kills and accounting, with net/http as server and client.
PROPERTY = grep -rl --include='*_test.go' '^//lane:property$$' shared functions | xargs -rn1 dirname | sed 's|^|gateway/|' | sort -u
# Packages without tests were compiled in lint, and are not compiled for the race detector.
TESTED = $(GO) list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' $(PKG)

sequential: deps ## tests of the packages without concurrency: scripts/unraced.txt
	@all=$$($(TESTED)) && p=$$(grep -xF "$$($(UNRACED))" <<<"$$all" || true) && { [ -z "$$p" ] || $(PLAIN) $$p; }

property: deps ## tests with many hundred iterations, without the race detector
	@all=$$($(TESTED)) && p=$$(grep -xF "$$($(PROPERTY))" <<<"$$all" || true) && { [ -z "$$p" ] || $(PLAIN) -run "$$(scripts/lane.sh property shared functions)" $$p; }

race-packages: deps ## tests of all other packages of shared/ and functions/, with the race detector
	@all=$$($(TESTED)) && p=$$(grep -vxF "$$($(UNRACED))" <<<"$$all" | grep -vE '$(PROGRAMS)' || true) && { [ -z "$$p" ] || $(RACE) -skip "$$(scripts/lane.sh property shared functions)" $$p; }

programs: deps ## tests that build and run programs of this project
	@all=$$($(TESTED)) && p=$$(grep -vxF "$$($(UNRACED))"$$'\n'gateway/local <<<"$$all" | grep -E '$(PROGRAMS)' || true) && { [ -z "$$p" ] || $(RACE) -count=1 $$p; }

# Omitted if PKG names other packages.
LOCAL = all=$$($(GO) list $(PKG)) && { grep -qx gateway/local <<<"$$all" || exit 0; } &&

exhaustive: deps ## tests of ./local that try every route, client or host
	@$(LOCAL) $(PLAIN) -run "$$(scripts/lane.sh exhaustive local/*_test.go)" ./local

race-local: deps ## the other tests of ./local, with the race detector
	@$(LOCAL) $(RACE) -skip "$$(scripts/lane.sh exhaustive local/*_test.go)" ./local

# Not part of this: the emulators of DynamoDB and SQS, the race detector, ./local.
quick: ## while you work: vet changes since main, test shared/ and its golden files in short mode
	@changed=$$( (git diff --name-only --diff-filter=d $$(git merge-base HEAD $(BASE)); git ls-files -o --exclude-standard) | grep -E '\.go$$' | grep -vE '^(infra|scripts/(goaws|lint|clients/goclient))/' | xargs -rn1 dirname | sort -u | sed 's|^|./|') && \
	{ [ -z "$$changed" ] || { echo "vet $$changed" && $(GO) vet $$changed; }; }
	$(PLAIN) -short ./shared/...
BASE ?= main

# On amd64, assembly is disabled when the program starts, so that nothing is recompiled;
# elsewhere a build tag excludes it, also from programs that tests build. A test of ./shared
# checks that the tag excludes all assembly.
NOASM = $(if $(filter amd64,$(shell $(GO) env GOARCH)),GODEBUG=cpu.avx2=off,GOFLAGS="$$GOFLAGS -tags=purego")
standard: deps ## end-to-end tests with net/http as server and client, without assembly and the mapped ring
	$(PLAIN) -tags purego ./shared/wire/...
	GATEWAY_HTTP=standard GATEWAY_RING=off $(NOASM) $(PLAIN) -run "$$(scripts/lane.sh standard local/*_test.go)" ./local
	GATEWAY_HTTP=standard $(NOASM) $(PLAIN) -count=1 -run "$$(scripts/lane.sh standard scripts/clients/*_test.go)" ./scripts/clients

lint: ## gofmt, vet, staticcheck, and the limit of methods of a type
	@out=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$out" ]; then echo "gofmt wants to change:"; echo "$$out"; exit 1; fi
	$(GO) vet $(PKG)
	cd scripts/clients/goclient && $(GO) vet ./...
	cd scripts/lint && $(GO) build -o ../../bin/staticcheck honnef.co/go/tools/cmd/staticcheck
	GOGC=400 bin/staticcheck $(PKG)
	cd scripts/lint && $(GO) vet ./structure && $(GO) test ./structure && $(GO) build -o ../../bin/structure ./structure
	bin/structure ./shared/... ./functions/... ./local/...

# Needs the vulnerability database at vuln.go.dev, or a copy: VULNDB=file:///path.
vulncheck: ## known vulnerabilities in reachable code
	cd scripts/lint && $(GO) build -o ../../bin/govulncheck golang.org/x/vuln/cmd/govulncheck
	bin/govulncheck $(if $(VULNDB),-db $(VULNDB)) $(PKG)
	cd infra && ../bin/govulncheck $(if $(VULNDB),-db $(VULNDB)) ./...

outdated: ## direct dependencies that have a newer version
	@for dir in . infra scripts/lint scripts/goaws scripts/clients/goclient; do (cd $$dir && echo "$$dir:" && GOFLAGS=-mod=mod $(GO) list -m -u -f '{{if and (not .Indirect) .Update}}{{.Path}} {{.Version}} -> {{.Update.Version}}{{end}}' all | grep . || echo "nothing newer"); done

contract: ## the OpenAPI document breaks no client of the last release
	scripts/contract.sh

# Type checking finds names that a platform lacks, in a tenth of the time of compiling.
# Packages with assembly are compiled and linked.
cross: ## compile for platforms on which no test runs
	$(NICE) $(GO) build -o bin/platforms ./scripts/platforms
	$(NICE) bin/platforms $(ELSEWHERE) ./shared/... ./local/... ./functions/...
	$(NICE) bin/platforms -test $(ELSEWHERE) $(PLATFORM)
	GOOS=darwin GOARCH=arm64 $(NICE) $(GO) vet ./shared/wire
	GOOS=darwin GOARCH=arm64 $(NICE) $(GO) test -vet=off -c -o /dev/null ./shared/wire
ELSEWHERE = darwin/arm64,windows/amd64,linux/riscv64
# Packages with files for one platform.
PLATFORM = ./shared/wire/... ./shared/egress ./shared/host/... ./shared/usage ./shared/store/sqlite ./local ./local/cli/... ./functions/container

# Few inputs, so that random findings in other places do not block a change: to search for
# faults, set FUZZTIME=1m. So few need no separate build.
fuzz: ## each fuzz target with 500 new inputs; longer with FUZZTIME=1m
	scripts/fuzz.sh $${FUZZTIME:-500x}

arm: deps ## all tests of shared/ for arm64 under qemu-aarch64-static, where it is installed
	scripts/arm64.sh ./shared/...

clients: deps ## real clients against a local gateway
	$(GO) test -count=1 ./scripts/clients/...

matrix: ## write shared/provider/MATRIX.md from the results of its test
	$(GO) test -count=1 -run 'TestMatrix$$' ./local -args -update

prices: ## compare prices, windows, inputs and ends of models with pinned public data sets; refuse changed prices without a source
	npm ci --silent --no-audit --no-fund --prefix scripts/prices
	node scripts/prices/compare.mjs
	node scripts/prices/compare.mjs --check

conformance: deps ## run third-party suites and write functions/docs/guides/conformance.md; SUITES=word for some
	node scripts/conformance/run.mjs $(SUITES)

findings: ## run the scripts of findings/, which fail when a behavior has changed
	@set -e; for f in findings/*.sh; do echo "$$f"; bash $$f; done

release: ## static binaries, checksums, SBOM, image definition and changelog into dist/release
	$(GO) run ./scripts/release

quickstart: ## the first ten minutes as a script, against a new gateway
	scripts/quickstart.sh

agents: deps ## real coding agents work through the gateway, and write their tables in functions/docs/guides/requests.md
	$(GO) test -count=1 -v -timeout 40m -run 'Agents' ./scripts/clients -args -update-agents

senders: ## record the telemetry of instrumentations of LLM SDKs, with their packages from npm
	$(GO) run ./scripts/senders

bench: ## gateway CPU per request, compared with a plain reverse proxy, and per imported span
	scripts/bench/bench.sh
	$(GO) test -run '^$$' -bench Ingest -benchtime 100x ./functions/logs

bench-peers: ## the cells of bench on the gateway and on other gateways that registries offer, side by side, and write functions/docs/guides/peers.md
	scripts/bench/bench.sh -peers functions/docs/guides/peers.md $(BENCH)

bench-admin: ## time of each call of the administration in an organization with 100,000 resources
	$(GO) test -count=1 -timeout $(TIMEOUT) -run SpeedOfTheAdministration ./functions/assembly -args -bench-admin

bench-mcp: ## gateway CPU per call of an MCP tool and per cached list
	$(GO) test -count=1 -run '^$$' -bench Gateway -benchtime 60000x ./scripts/mcp

REQUESTS ?= 1000000
bench-analytics: ## time of analytics and logs, cold and warm, at REQUESTS requests (1000000) over 30 days
	dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && $(GO) run ./scripts/seed -data "$$dir" -requests $(REQUESTS) && $(GO) run ./scripts/seed -data "$$dir" -measure

load: deps ## the function chat in 50 environments on one DynamoDB: limits, records, cold starts, cost
	$(GO) run ./scripts/load

localstack: deps ## contracts, stacks of tables, queues and workers, and the smoke test on LocalStack (needs Docker)
	npm ci --silent --no-audit --no-fund --prefix infra
	docker compose -f local/compose.yaml up -d --wait
	AWS_ENDPOINT_URL=http://127.0.0.1:4566 scripts/endpoint.sh --deploy; code=$$?; docker compose -f local/compose.yaml down; exit $$code

lambdas: ## build every function for Lambda into dist/
	scripts/lambdas.sh

synth: ## synthesize the CloudFormation templates into cdk.out
	scripts/synth.sh

infra-test: ## assertions on the templates, resource counts, cdk-nag
	cd infra && $(GO) test -timeout $(TIMEOUT) ./...

clean: ## remove what was built
	rm -rf bin dist cdk.out infra/cdk.out
