package jsontext

// Members splits an object of valid JSON. wanted returns the destination of the value of a member, or
// nil to refuse the member. Members returns false for any other value, and for an object with a refused or
// repeated member.
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
		i = SkipSpace(object, SkipSpace(object, end)+1) // skip the colon
		end = SkipValue(object, i)
		*into = object[i:end:end]
		if i = SkipSpace(object, end); object[i] == ',' {
			i = SkipSpace(object, i+1)
		}
	}
	return true
}

// Elements splits an array of valid JSON. It returns false for any other value, and if each
// returned false for an element.
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
