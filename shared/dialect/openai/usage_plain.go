package openai

import "bytes"

// readPlain reads a usage object of integers, nulls and objects of these, which is the
// form of nearly all, and returns the index after it. It finds the same as readUsage; ok
// is false for an object of any other form.
func (r *reported) readPlain(b []byte) (end int, ok bool) {
	*r = unreported
	if at(b, 0) != '{' {
		return 0, false
	}
	within := wholeUsage
	for i := skipSpace(b, 1); ; {
		key, next := plainKey(b, i)
		if next == 0 {
			return 0, false
		}
		if i = next; at(b, i) == '{' && within == wholeUsage {
			within = detailsOf(key)
			if i = skipSpace(b, i+1); at(b, i) != '}' {
				continue
			}
		} else if i = plainCount(b, i, r.place(within, key)); i == 0 {
			return 0, false
		}
		i = skipSpace(b, i)
		if at(b, i) == '}' && within != wholeUsage {
			within = wholeUsage
			i = skipSpace(b, i+1)
		}
		switch at(b, i) {
		case ',':
			i = skipSpace(b, i+1)
		case '}':
			return i + 1, within == wholeUsage
		default:
			return 0, false
		}
	}
}

// usagePart is an object of counts.
type usagePart uint8

const (
	wholeUsage usagePart = iota
	ofPrompt
	ofCompletion
	ofWritten // how long cache writes are retained
	ofCached  // what kinds of tokens were read from it
	ofNothing // that is known here
)

func detailsOf(key []byte) usagePart {
	switch string(key) {
	case "prompt_tokens_details", "input_tokens_details", "input_token_details":
		return ofPrompt
	case "completion_tokens_details", "output_tokens_details", "output_token_details":
		return ofCompletion
	}
	return ofNothing
}

// partOf is detailsOf within a part.
func partOf(within usagePart, key []byte) usagePart {
	if within == ofPrompt {
		switch string(key) {
		case "cache_write_tokens_details":
			return ofWritten
		case "cached_tokens_details":
			return ofCached
		}
	}
	return ofNothing
}

// place is where the number of a field is stored; nil means nowhere.
func (r *reported) place(within usagePart, key []byte) *int64 {
	switch within {
	case wholeUsage:
		return r.count(key)
	case ofPrompt:
		return r.promptDetail(key)
	case ofCompletion:
		return r.completionDetail(key)
	case ofWritten:
		switch string(key) {
		case "ttl_30m_tokens":
			return &r.n[written30m]
		case "ttl_12h_tokens":
			return &r.n[written12h]
		}
	case ofCached:
		switch string(key) {
		case "audio_tokens":
			return &r.n[audioCached]
		case "image_tokens":
			return &r.n[imageCached]
		}
	}
	return nil
}

// at is the byte at i; 0 after the end.
func at(b []byte, i int) byte {
	if i < len(b) {
		return b[i]
	}
	return 0
}

// plainKey reads a key without escapes and its colon, and gives the index of the
// value; 0 when there is no such key.
func plainKey(b []byte, i int) (key []byte, next int) {
	if at(b, i) != '"' {
		return nil, 0
	}
	start := i + 1
	for i = start; ; i++ {
		if c := at(b, i); c == '"' {
			break
		} else if c < ' ' || c == '\\' {
			return nil, 0
		}
	}
	key = b[start:i]
	if i = skipSpace(b, i+1); at(b, i) != ':' {
		return nil, 0
	}
	return key, skipSpace(b, i+1)
}

// plainCount reads null or an integer into n, which may be nil, and returns the index
// after it; 0 for any other value.
func plainCount(b []byte, i int, n *int64) int {
	const most = 12 // a number with this many digits never exceeds the charge
	start, sum := i, int64(0)
	for ; i < len(b) && b[i]-'0' <= 9; i++ {
		if i-start >= most {
			return 0
		}
		sum = sum*10 + int64(b[i]-'0')
	}
	switch c := at(b, i); {
	case i == start:
		if c == 'n' && bytes.HasPrefix(b[i:], []byte("null")) {
			return i + 4
		}
		return 0
	case c == '.' || c|0x20 == 'e', b[start] == '0' && i > start+1:
		return 0
	}
	if n != nil {
		*n = sum
	}
	return i
}
