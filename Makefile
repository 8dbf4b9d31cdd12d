.DEFAULT_GOAL := help
SHELL := /bin/bash -o pipefail
TOOL  := go tool -modfile=internal/tools/go.mod
# The compiler is silent. Built and not `go run`, so that make's last line names the program's own exit status.
LOCAL := { test -e bin/local || echo "compiling; the first time takes a few minutes"; } && \
	go build -o bin/local ./deploy/local && exec bin/local

.PHONY: help
help: ## show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## see the idea: book, pay, lose a response, reconcile, replay (starts and stops all it needs)
	@$(LOCAL) demo

.PHONY: up
up: ## the same stack, kept up; prints addresses, tokens and a first curl; Ctrl-C stops it
	@$(LOCAL) up --stop-with-parent

.PHONY: test
test: ## every test, race detector on, against real PostgreSQL, JetStream and HTTP (SUITE=full: more seeds, requests, combinations)
	$(TOOL) gotestsum --version >/dev/null
	$(if $(SUITE),HOLDFAST_SUITE=$(SUITE)) go run ./internal/testdb/cmd/withdb -- $(TOOL) gotestsum --format pkgname-and-test-fails --format-hide-empty-pkg -- \
		-race -vet=off -shuffle=on -parallel 6 -timeout 30m $(TESTFLAGS) ./...

FUZZTIME ?= 60s
.PHONY: fuzz
fuzz: ## every fuzz target for a minute, one after the other (FUZZTIME=10m, FUZZFLAGS=-parallel=1); finds stay in testdata/fuzz
	@go run ./internal/testdb/cmd/withdb -- bash -eo pipefail -c 'for dir in $$(grep -rl --include="*_test.go" "^func Fuzz" . | xargs -n1 dirname | sort -u); do \
		for target in $$(go test -list "^Fuzz" $$dir | grep "^Fuzz"); do \
			echo "== $$target"; go test -run "^$$target\$$" -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $(FUZZFLAGS) $$dir </dev/null; done; done'

.PHONY: model
model: ## check the protocol's model with spin: every property, and every planted bug found (MODEL=full: larger)
	docs/model/check

.PHONY: lint
lint: ## golangci-lint: the house style, and the directions in which packages may import
	$(TOOL) golangci-lint run ./...

.PHONY: fmt
fmt: ## format the code
	$(TOOL) golangci-lint fmt ./...

.PHONY: build
build: ## build the three binaries and the simulator into bin/
	go build -o bin/ ./cmd/... ./payments/stripesim/cmd/...

.PHONY: generate
generate: ## rewrite the golden files (shapes of events and jobs) from the code
	go test ./outbox -run Golden -update

.PHONY: verify
verify: ## go.mod, formatting and golden files are what the code says: no diff is left
	go mod tidy -diff
	$(TOOL) golangci-lint fmt --diff ./...
	go vet ./...
	go test ./outbox -run Golden

.PHONY: mutants
mutants: ## plant known bugs one at a time, and see each killed by its test (SIMULATE=500: found by the simulation alone; MUTANTS="name …")
	@go run ./internal/testdb/cmd/withdb -- go run ./internal/e2e/mutants $(if $(SIMULATE),--simulate $(SIMULATE)) $(MUTANTS)

FINANCE ?= 100000,1000000
.PHONY: finance-big
finance-big: ## match histories of two sizes (FINANCE=100000,1000000): all that was planted is found, in the same memory
	go run ./internal/testdb/cmd/withdb -- go test ./internal/finance -run TestMemory -timeout 8h -v -finance.memory=$(FINANCE)

SEEDS ?= 2000
FROM ?= 1
.PHONY: simulate
simulate: ## seeded schedules of the whole system, each checked (SEEDS=2000, FROM=1); SEED=7 replays one, and prints it
	@mkdir -p bin && go build -o bin/simulate ./internal/simulate/cmd/simulate && \
		exec bin/simulate $(if $(SEED),--seed $(SEED),--seeds $(SEEDS) --from $(FROM)) $(SIMULATEFLAGS)

.PHONY: bench
bench: ## measure accepting a booking and its pick-up, in about six minutes; BENCH_ROUNDS, BENCH_SECONDS shorten it
	go run ./internal/e2e/bench
