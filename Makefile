# viad. `make run` and `make run ROBOT=stretch4` are all that a first look needs; `make help` lists the rest.

ROBOT ?= franka
GO ?= go
# Test processes side by side; each twin keeps a core busy.
P ?= 2

.PHONY: run build packages test check long soak wire bench conformance agents page page-check page-test lint fmt generate clean help

run: packages build ## start the daemon on the twin and print how to connect (ROBOT=franka or stretch4)
	@exec bin/viad run launch/twin-$(ROBOT).yaml

build: ## bin/viad and bin/viactl
	$(GO) build -o bin/viad ./cmd/viad
	CGO_ENABLED=0 $(GO) build -o bin/viactl ./cmd/viactl

packages: ## install the system packages that are missing (says which, once)
	@.ci/packages run

test: ## unit, physics and end-to-end tests: under 12 minutes on two cores
	$(GO) test -short -p $(P) -timeout 12m $(shell $(GO) list ./... | grep -v -e /launch/kill)
	$(GO) test -count 1 -timeout 5m ./launch/kill

check: ## the race detector and longer forms: under 25 minutes more
	$(GO) test -race -p $(P) -timeout 25m $(shell $(GO) list ./... | grep -v -e /launch$$ -e /launch/e2e -e /launch/field -e /launch/kill -e /launch/soak)
	$(GO) test -race -p 1 -timeout 25m ./launch -short
	$(GO) test -race -timeout 25m ./launch/field -run TestField01
	$(GO) test -race -timeout 25m ./launch/soak
	$(GO) test -race -timeout 25m ./launch/e2e -seeds 1

wire: ## the robots' drivers against the twin on their own wires, and everything between killed in mid-motion: one row a cell
	@.ci/packages ci
	VIAD_CI=1 $(GO) test -v -count 1 -timeout 30m ./launch/e2e -run OnTheWire -cells all
	VIAD_CI=1 $(GO) test -v -count 1 -timeout 30m ./launch/kill -matrix all
	VIAD_CI=1 $(GO) test -v -count 1 -timeout 30m ./launch/field

long: soak wire ## every seed and the full lengths, by hand; figures in docs/
	$(GO) test -v -count 1 -timeout 3h ./launch/e2e -seeds 10
	$(GO) test -v -count 1 -timeout 1h ./ros/interop -long

soak: ## 50,000 random, hostile and valid calls from four clients, with faults; figures in docs/soak.md
	$(GO) test -v -count 1 -timeout 3h ./launch/soak -run TestSoak -calls 50000 -phases

bench: ## the table of ratios, kept in docs/bench.md (npm, Debian's chromium)
	@.ci/packages ci
	cd launch/bench/browser && npm ci --silent --no-audit --no-fund
	$(GO) run ./launch/bench

conformance: build ## the official MCP suites and the Inspector's strict lint against the daemon (npm, Node 20 or newer)
	.ci/conformance/run

agents: build ## the printed lines in the real Claude Code and Codex, with a stand-in for the model (npm)
	.ci/agents/run

page: ## rebuild the people's page (npm)
	cd interface/web && npm ci --silent && npm run --silent check && npm run --silent build

page-check: page ## the committed bundle is current
	git diff --exit-code --stat -- interface/web/dist

page-test: build ## the page in headless Chromium (npm, Debian's chromium)
	cd interface/web && npm ci --silent && npm run --silent test

lint: ## gofumpt, vet, golangci-lint, tidy
	.ci/lint

fmt: ## format all Go files
	gofumpt -w cmd drivers interface launch perception ros safety sim .ci

generate: ## regenerate golden files
	$(GO) test ./interface/tool ./interface/view -update

clean: ## remove what was built
	rm -rf bin tmp

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14
