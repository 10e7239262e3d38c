# build, check, test, lint, bench and fuzz; everything runs without a network once the modules are there.

FUZZTIME ?= 10s

.PHONY: build check test lint bench bench-load bench-search fuzz size generate

build:
	CGO_ENABLED=0 go build -trimpath -o toolctl ./cmd/toolctl

# What a change needs before it is committed: build, and vet, linter and tests of the packages that differ from BASE.
check:
	@.ci/check $(BASE)

test:
	go test ./...

lint:
	test -z "$$(gofmt -l .)" || { gofmt -d . ; exit 1; }
	go vet ./...
	go mod tidy -diff
	cd tools && go tool -modfile=go.mod golangci-lint version >/dev/null
	go tool -modfile=tools/go.mod golangci-lint run ./...

# Every benchmark stands beside its floor; the ratio is what counts.
bench:
	go test -run '^$$' -bench . -benchmem -count $(or $(COUNT),5) ./... | grep -v '^ok\|no test files'

# Calls of ordinary clients through serve, beside direct ones and a hop that does nothing (Linux).
bench-load:
	go test -run '^$$' -bench 'Ordinary|Shapes' -benchtime 2s -count $(or $(COUNT),3) ./cmd/toolctl

# How well the search finds tools, on the public sets in the file that TOOLCTL_TOOL_SEARCH names, beside SQLite's FTS5.
bench-search:
	@go test -run '^TestPublishedSets$$' -count 1 -v ./pkg/search

# A short run of every fuzz target.
fuzz:
	@.ci/fuzz $(FUZZTIME)

# What each module adds to the stripped binary, whose budget a test holds.
size:
	@.ci/size

generate:
	go generate ./...
