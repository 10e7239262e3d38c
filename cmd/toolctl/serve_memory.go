package main

import (
	"errors"
	"math"
	"runtime/debug"
	"strconv"
	"strings"
)

// limitMemory has the garbage collector work harder, rather than let the process grow, once
// it has what is decoded at once and what it has anyway. GOMEMLIMIT says otherwise.
func (a *app) limitMemory(budget int64) {
	const anyway = 160 << 20
	if v, ok := a.env("GOMEMLIMIT"); ok && v != "" || budget > math.MaxInt64-anyway {
		return
	}
	debug.SetMemoryLimit(budget + anyway)
}

var byteUnits = map[string]int64{
	"": 1, "B": 1, "K": 1e3, "KB": 1e3, "M": 1e6, "MB": 1e6, "G": 1e9, "GB": 1e9,
	"KI": 1 << 10, "KIB": 1 << 10, "MI": 1 << 20, "MIB": 1 << 20, "GI": 1 << 30, "GIB": 1 << 30,
}

// parseBytes reads a number of bytes, such as 256MiB, 256Mi, 1GB or 1000000.
func parseBytes(text string) (int64, error) {
	digits := strings.TrimRightFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	n, err := strconv.ParseInt(digits, 10, 64)
	unit, known := byteUnits[strings.ToUpper(strings.TrimSpace(text[len(digits):]))]
	if err != nil || !known || n < 1 || n > math.MaxInt64/unit {
		return 0, errors.New("expected a number of bytes, such as 256MiB, 1GiB or 268435456")
	}
	return n * unit, nil
}
