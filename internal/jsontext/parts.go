package jsontext

// Members takes an object of valid JSON apart. wanted says where the value of a member goes;
// nil when it is not wanted. False says that it is no object, or has such a member, or one
// twice.
func Members(object []byte, wanted func(name string) *[]byte) bool {
	i := SkipSpace(object, 0)
	if i == len(object) || object[i] != '{' {
		return false
	}
	for i = SkipSpace(object, i+1); object[i] == '"'; {
		end := SkipString(object, i)
		into := wanted(string(object[i+1 : end-1]))
		if into == nil || *into != nil {
			return false
		}
		i = SkipSpace(object, SkipSpace(object, end)+1) // after the colon
		end = SkipValue(object, i)
		*into = object[i:end:end]
		if i = SkipSpace(object, end); object[i] == ',' {
			i = SkipSpace(object, i+1)
		}
	}
	return true
}

// Elements takes an array of valid JSON apart. False says that it is no array, or that each
// did not want one of its elements.
func Elements(array []byte, each func(element []byte) bool) bool {
	i := SkipSpace(array, 0)
	if i == len(array) || array[i] != '[' {
		return false
	}
	for i = SkipSpace(array, i+1); array[i] != ']'; {
		end := SkipValue(array, i)
		if !each(array[i:end:end]) {
			return false
		}
		if i = SkipSpace(array, end); array[i] == ',' {
			i = SkipSpace(array, i+1)
		}
	}
	return true
}
