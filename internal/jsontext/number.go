package jsontext

import "math/big"

// maxDigits is the maximum length of a number: the time to read a number grows with the square of its
// length.
const maxDigits = 1000

// Number returns the value of a JSON number with all its digits. It returns false if the text is not a
// number, or is longer than 1,000 characters.
func Number(text string) (*big.Float, bool) {
	if len(text) > maxDigits {
		return nil, false
	}
	f, _, err := big.ParseFloat(text, 10, 4*maxDigits, big.ToNearestEven)
	return f, err == nil
}
