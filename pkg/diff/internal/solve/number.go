package solve

import (
	"encoding/json"
	"math/big"
	"slices"
)

// maxTries is the maximum number of candidates.
const maxTries = 4000

// number finds a number that fits the shape.
func (s *shape) number() (any, Answer) {
	var answer Answer
	var v *big.Rat
	if len(s.steps) > 0 {
		v, answer = s.multiple()
	} else {
		v, answer = s.real()
	}
	if answer != Found {
		return nil, answer
	}
	text, exact := decimal(v)
	if !exact {
		return nil, Unknown
	}
	return json.Number(text), Found
}

// inside reports whether a number fits all of the shape except steps.
func (s *shape) inside(v *big.Rat) bool {
	if l := s.lo; l != nil && (v.Cmp(l.at) < 0 || l.open && v.Cmp(l.at) == 0) {
		return false
	}
	if l := s.hi; l != nil && (v.Cmp(l.at) > 0 || l.open && v.Cmp(l.at) == 0) {
		return false
	}
	return !slices.ContainsFunc(s.notNums, func(n *big.Rat) bool { return n.Cmp(v) == 0 }) &&
		!slices.ContainsFunc(s.notSteps, func(step *big.Rat) bool { return new(big.Rat).Quo(v, step).IsInt() })
}

// multiple searches the multiples of all steps.
func (s *shape) multiple() (*big.Rat, Answer) {
	step := s.steps[0]
	for _, other := range s.steps[1:] {
		step = lcm(step, other)
	}
	// The multiples that notSteps rules out repeat with this period.
	period := big.NewInt(1)
	for _, not := range s.notSteps {
		n := new(big.Rat).Quo(lcm(step, not), step).Num()
		period = new(big.Int).Div(new(big.Int).Mul(period, n), new(big.Int).GCD(nil, nil, period, n))
	}
	k, up := big.NewInt(0), true // the first candidate, and the direction of the search
	switch {
	case s.lo != nil && s.lo.at.Sign() > 0, s.lo != nil && s.hi != nil:
		k = ceil(new(big.Rat).Quo(s.lo.at, step))
		if s.hi != nil && s.lo.at.Sign() < 0 && s.hi.at.Sign() > 0 && s.inside(new(big.Rat)) {
			return new(big.Rat), Found
		}
	case s.hi != nil:
		k, up = floor(new(big.Rat).Quo(s.hi.at, step)), false
		if k.Sign() > 0 {
			k.SetInt64(0)
		}
	case s.lo != nil && s.lo.at.Sign() < 0:
		k.SetInt64(0)
	}
	tries := new(big.Int).Add(period, big.NewInt(int64(len(s.notNums)+2)))
	enough := tries.Cmp(big.NewInt(maxTries)) <= 0
	for range maxTries {
		v := new(big.Rat).Mul(step, new(big.Rat).SetInt(k))
		if up && s.hi != nil && v.Cmp(s.hi.at) > 0 || !up && s.lo != nil && v.Cmp(s.lo.at) < 0 {
			return nil, Empty
		}
		if s.inside(v) {
			return v, Found
		}
		if enough && tries.Sign() < 0 {
			return nil, Empty
		}
		tries.Sub(tries, one.Num())
		if up {
			k.Add(k, one.Num())
		} else {
			k.Sub(k, one.Num())
		}
	}
	return nil, Unknown
}

// real searches all numbers.
func (s *shape) real() (*big.Rat, Answer) {
	if s.lo != nil && s.hi != nil {
		switch c := s.lo.at.Cmp(s.hi.at); {
		case c > 0:
			return nil, Empty
		case c == 0:
			if s.inside(s.lo.at) {
				return s.lo.at, Found
			}
			return nil, Empty
		}
	}
	base := new(big.Rat)
	switch {
	case s.lo != nil:
		base = s.lo.at
	case s.hi != nil:
		base = s.hi.at
	}
	var tries []*big.Rat
	for _, n := range []int64{0, 1, -1, 2, 3, 5, 7} {
		tries = append(tries, big.NewRat(n, 1))
	}
	tries = append(tries, base)
	for _, part := range []*big.Rat{one, big.NewRat(1, 2), big.NewRat(1, 4), big.NewRat(3, 8), big.NewRat(1, 10), big.NewRat(1, 1000), big.NewRat(7, 10_000_000)} {
		tries = append(tries, new(big.Rat).Add(base, part), new(big.Rat).Sub(base, part))
	}
	if s.lo != nil && s.hi != nil {
		width := new(big.Rat).Sub(s.hi.at, s.lo.at)
		for _, part := range []*big.Rat{big.NewRat(1, 2), big.NewRat(1, 4), big.NewRat(3, 8), big.NewRat(13, 64), big.NewRat(101, 1024)} {
			tries = append(tries, new(big.Rat).Add(s.lo.at, new(big.Rat).Mul(width, part)))
		}
	}
	for _, v := range tries {
		if _, exact := decimal(v); exact && s.inside(v) {
			return v, Found
		}
	}
	return nil, Unknown
}

// lcm returns the smallest number that is a multiple of both.
func lcm(a, b *big.Rat) *big.Rat {
	num := new(big.Int).Mul(a.Num(), b.Denom())
	other := new(big.Int).Mul(b.Num(), a.Denom())
	gcd := new(big.Int).GCD(nil, nil, num, other)
	whole := new(big.Int).Div(new(big.Int).Mul(num, other), gcd)
	return new(big.Rat).SetFrac(whole, new(big.Int).Mul(a.Denom(), b.Denom()))
}

func floor(v *big.Rat) *big.Int { return new(big.Int).Div(v.Num(), v.Denom()) }

func ceil(v *big.Rat) *big.Int {
	return new(big.Int).Neg(floor(new(big.Rat).Neg(v)))
}

// decimal writes a number in decimal. It returns false for an infinite decimal or one with too many
// digits.
func decimal(v *big.Rat) (string, bool) {
	if v.IsInt() {
		return v.Num().String(), true
	}
	places, exact := v.FloatPrec()
	return v.FloatString(places), exact && places <= 15
}
