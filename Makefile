# Everything a contributor may do. `make help` lists it.
SHELL := /bin/bash
GO    ?= go
NICE  ?=
# Packages of the main module; infra and scripts/goaws are modules of their own.
PKG   ?= ./...

.PHONY: help run test quick unit standard lint contract cross fuzz arm clients bench bench-admin bench-mcp bench-analytics matrix load localstack synth infra-test lambdas deps clean

help: ## list the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk 'BEGIN{FS=":.*## "}{printf "  make %-12s %s\n",$$1,$$2}'

run: ## start the gateway on this machine
	$(GO) run ./local

deps: node_modules/.stamp ## install what the tests need from npm, pinned in lock files

node_modules/.stamp: scripts/testdeps/package-lock.json scripts/clients/package-lock.json scripts/agents/package-lock.json scripts/mcp/package-lock.json scripts/sql/package-lock.json
	npm ci --silent --no-audit --no-fund --prefix scripts/testdeps
	npm ci --silent --no-audit --no-fund --prefix scripts/clients
	npm ci --silent --no-audit --no-fund --ignore-scripts --prefix scripts/agents
	npm ci --silent --no-audit --no-fund --ignore-scripts --prefix scripts/mcp
	npm ci --silent --no-audit --no-fund --ignore-scripts --prefix scripts/sql
	@mkdir -p node_modules && touch $@

test: deps lint contract cross unit standard infra-test fuzz ## everything that CI runs

# How long the tests of one package may take: no test waits on the clock, so this is
# for slow machines alone.
TIMEOUT ?= 60m

# Tables of ./local that ask every route, one question behind the other: the race
# detector has seen what they run by the other tests, and makes them five times slower.
TABLES = TestAdministrationIsNeverPassedThrough|TestCompressedAnswers|TestEveryRouteRefusesCallers|TestHostileBodiesAreRefused|TestMatrix$$|TestAnotherOrganisationsThings|TestAnotherWorkspacesThings|TestEveryRouteHasEveryCheck|TestEveryPathOfTheOpenAISDK|TestEveryDocumentedRoute|TestEveryShapeToEveryShape|TestBodiesAreBounded|TestPagesAreBounded|TestTheDocumentIs

# Packages whose tests build programs of this project: go test does not know what those
# are made of, and would tell of a run before they changed.
BUILD = ^gateway/(local|scripts)/

# Vet has run in lint.
unit: deps ## all tests of the main module, with the race detector where there is concurrency
	@unraced=$$(grep -v '^#' scripts/unraced.txt | sed 's|^|gateway/|') && all=$$($(GO) list $(PKG)) && \
	calm=$$(grep -xF "$$unraced" <<<"$$all" || true) && other=$$(grep -vxF "$$unraced"$$'\n'gateway/local <<<"$$all" || true) && \
	build=$$(grep -E '$(BUILD)' <<<"$$other" || true) && other=$$(grep -vE '$(BUILD)' <<<"$$other" || true) && \
	{ [ -z "$$calm" ] || $(NICE) $(GO) test -vet=off -timeout $(TIMEOUT) $$calm; } && \
	{ [ -z "$$build" ] || $(NICE) $(GO) test -vet=off -race -count=1 -timeout $(TIMEOUT) $$build; } && \
	{ [ -z "$$other" ] || $(NICE) $(GO) test -vet=off -race -timeout $(TIMEOUT) $$other; } && \
	{ ! grep -qx gateway/local <<<"$$all" || { $(NICE) $(GO) test -vet=off -timeout $(TIMEOUT) -run '$(TABLES)' ./local && $(NICE) $(GO) test -vet=off -race -timeout $(TIMEOUT) -skip '$(TABLES)' ./local; }; }

# What is left out here: the emulators of DynamoDB and SQS, the race detector, ./local.
quick: ## while you work: vet what changed since main, test shared/ and its golden files in short mode
	@changed=$$( (git diff --name-only --diff-filter=d $$(git merge-base HEAD $(BASE)); git ls-files -o --exclude-standard) | grep -E '\.go$$' | grep -vE '^(infra|scripts/(goaws|lint))/' | xargs -rn1 dirname | sort -u | sed 's|^|./|') && \
	{ [ -z "$$changed" ] || { echo "vet $$changed" && $(GO) vet $$changed; }; }
	$(NICE) $(GO) test -vet=off -short -timeout $(TIMEOUT) ./shared/...
BASE ?= main

# What of the end-to-end tests shows that net/http serves and calls as the engines of
# this project do: wire, streams, faults, kills and books.
STANDARD = RefusalsDoNotWait|TargetsThat|Hostile|HeadersEndHere|ByteForByte|PassThroughBodies|WhatReachesAProvider|FilesComeBack|LongUpload|CutUpload|BrokenForms|BrokenStreams|ErrorsBeforeAStream|FallbackCovers|AClientThatLeaves|SilentStreams|DiesUnderManyStreams|LeaveAreBilled|KilledAtTwenty|StopLetsStreams|OurBooks|TwoHundredCallers|CompressedAnswers|LargeAnswers|TestTheDocumentIs

standard: deps ## end-to-end tests with net/http as server and client, and without assembly
	$(NICE) $(GO) test -tags purego ./shared/wire/...
	GATEWAY_HTTP=standard GATEWAY_RING=off $(NICE) $(GO) test -tags purego -timeout $(TIMEOUT) -run '$(STANDARD)' ./local
	GATEWAY_HTTP=standard GOFLAGS="$$GOFLAGS -tags=purego" $(NICE) $(GO) test -count=1 ./scripts/clients/...

lint: ## gofmt, vet and staticcheck
	@out=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$out" ]; then echo "gofmt wants to change:"; echo "$$out"; exit 1; fi
	$(GO) vet $(PKG)
	cd scripts/lint && $(GO) build -o ../../bin/staticcheck honnef.co/go/tools/cmd/staticcheck
	bin/staticcheck $(PKG)

contract: ## the OpenAPI document breaks no client of the last release
	scripts/contract.sh

# Platforms that no test here runs on. Commands are vetted and not linked; of the
# platform that has no files of its own only what has some for others is compiled.
cross: ## compile for platforms that no test runs on
	@for p in darwin/arm64 windows/amd64; do echo "build for $$p"; export GOOS=$${p%/*} GOARCH=$${p#*/} CGO_ENABLED=0; \
	$(NICE) $(GO) build $$($(GO) list -f '{{if ne .Name "main"}}{{.ImportPath}}{{end}}' ./shared/... ./local/... ./functions/...) && $(NICE) $(GO) vet ./local ./functions/container $(PLATFORM) || exit 1; done
	@echo "build for linux/riscv64"; GOOS=linux GOARCH=riscv64 CGO_ENABLED=0 $(NICE) $(GO) vet $(PLATFORM)
# Packages with files for one platform.
PLATFORM = ./shared/wire/... ./shared/egress ./shared/host/... ./shared/usage

# So few tries that a change is not stopped by what chance finds elsewhere: to look
# for faults, give each target a minute by hand.
fuzz: ## each fuzz target with 500 new inputs; longer with FUZZTIME=1m
	scripts/fuzz.sh $${FUZZTIME:-500x}

arm: deps ## all tests of shared/ for arm64 under qemu-aarch64-static, where it is installed
	scripts/arm64.sh ./shared/...

clients: deps ## real clients against a local gateway
	$(GO) test -count=1 ./scripts/clients/...

matrix: ## write shared/provider/MATRIX.md from the results of its test
	$(GO) test -count=1 -run 'TestMatrix$$' ./local -args -update

bench: ## gateway CPU per request beside a bare reverse proxy
	scripts/bench/bench.sh

bench-admin: ## time of each call of the administration in an organisation with 100,000 resources
	$(GO) test -count=1 -timeout $(TIMEOUT) -run SpeedOfTheAdministration ./functions/assembly -args -bench-admin

bench-mcp: ## the gateway's CPU time for a call of an MCP tool, and for a list that it has
	$(GO) test -count=1 -run '^$$' -bench Gateway -benchtime 20000x ./scripts/mcp

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

synth: ## synthesise the CloudFormation templates into cdk.out
	scripts/synth.sh

infra-test: ## assertions on the templates, resource counts, cdk-nag
	cd infra && $(GO) test ./...

clean: ## remove what was built
	rm -rf bin dist cdk.out infra/cdk.out
