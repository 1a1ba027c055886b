package wire

import (
	"iter"
	"strconv"
	"strings"
)

// member is one member of an object, or an element of an array with index n
// and no key.
type member struct {
	key, value Span
	n          int
}

// members walks the array or object that starts at i. It stops at the first
// byte that is not JSON.
func members(b []byte, i int) iter.Seq[member] {
	return func(yield func(member) bool) {
		object := b[i] == '{'
		at := skipSpace(b, i+1)
		for n := 0; at < len(b) && b[at] != '}' && b[at] != ']'; n++ {
			m := member{n: n}
			var why problem
			if object {
				if b[at] != '"' {
					return
				}
				m.key.Start = at
				if at, why = skipString(b, at+1); why != fine {
					return
				}
				m.key.End = at
				if at = skipSpace(b, at); at >= len(b) || b[at] != ':' {
					return
				}
				if at = skipSpace(b, at+1); at >= len(b) {
					return
				}
			}
			m.value.Start = at
			at, why = skipValue(b, at, MaxDepth)
			if m.value.End = at; why != fine {
				m.value.End = len(b) // even a broken value has a path
			}
			if !yield(m) || why != fine {
				return
			}
			if at = skipSpace(b, at); at < len(b) && b[at] == ',' {
				at = skipSpace(b, at+1)
			}
		}
	}
}

// PathAt returns the path of the innermost value that contains the byte at offset, such
// as messages[3].content[1].type; "" for the body itself. It reads the body again and is
// meant for the messages of faults. Long keys are cut.
func PathAt(body []byte, offset int) string {
	path := ""
	i := skipSpace(body, 0)
	for i < len(body) && (body[i] == '{' || body[i] == '[') {
		next := -1
		object := body[i] == '{'
		for m := range members(body, i) {
			if m.value.Start > offset {
				break
			}
			if offset >= m.value.End {
				continue
			}
			if object {
				path = joinPath(path, string(appendUnescaped(nil, body[m.key.Start+1:m.key.End-1])))
			} else {
				path += "[" + strconv.Itoa(m.n) + "]"
			}
			next = m.value.Start
			break
		}
		if next < 0 {
			break
		}
		i = next
	}
	return path
}

// joinPath adds a key to a path: a.b for a plain name, a["b c"] otherwise.
func joinPath(path, key string) string {
	if !plainKey(key) {
		return path + "[" + string(AppendJSONString(nil, clip(key))) + "]"
	}
	if path == "" {
		return clip(key)
	}
	return path + "." + clip(key)
}

func plainKey(key string) bool {
	return key != "" && strings.IndexFunc(key, func(r rune) bool {
		return r != '_' && r != '-' && r != '$' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) < 0
}
