package embedding

import (
	"fmt"
	"math"
)

// vector is a direction with one byte a dimension, which takes a quarter of the memory and orders tools nearly as the
// numbers of the model do.
type vector struct {
	values []int8
	length float64
}

func quantize(values []float32) (vector, error) {
	if len(values) == 0 || len(values) > maxDimensions {
		return vector{}, fmt.Errorf("it returns a vector of %d dimensions: expected 1 to %d", len(values), maxDimensions)
	}
	var largest float64
	for _, v := range values {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return vector{}, fmt.Errorf("it returns a vector with %v", v)
		}
		largest = max(largest, math.Abs(float64(v)))
	}
	if largest == 0 {
		return vector{}, fmt.Errorf("it returns a vector of zeros")
	}
	text := make([]byte, len(values))
	for i, v := range values {
		text[i] = byte(int8(math.Round(float64(v) / largest * math.MaxInt8)))
	}
	return decode(text), nil
}

// decode reads what encode returned. Without a text it returns the zero vector.
func decode(text []byte) (v vector) {
	if len(text) == 0 {
		return v
	}
	v.values = make([]int8, len(text))
	for i, b := range text {
		v.values[i] = int8(b)
	}
	v.length = math.Sqrt(float64(dot(v, v)))
	return v
}

func (v vector) encode() []byte {
	text := make([]byte, len(v.values))
	for i, n := range v.values {
		text[i] = byte(n)
	}
	return text
}

// dot is the scalar product of vectors with the same number of dimensions.
func dot(a, b vector) (sum int32) {
	other := b.values[:len(a.values)]
	for i, n := range a.values {
		sum += int32(n) * int32(other[i])
	}
	return sum
}
