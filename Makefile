# build, test, lint, bench and fuzz; everything runs without a network once the modules are there.

FUZZTIME ?= 10s

.PHONY: build test lint bench fuzz generate

build:
	CGO_ENABLED=0 go build -trimpath -o toolctl ./cmd/toolctl

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

# A short run of every fuzz target.
fuzz:
	@set -e; for pkg in $$(go list ./...); do \
	  for target in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "== $$pkg $$target"; \
	    go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$pkg; \
	  done; \
	done

generate:
	go generate ./...
