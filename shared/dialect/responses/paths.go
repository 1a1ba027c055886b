package responses

import (
	"strconv"
	"strings"
)

// A canonical message may be made of several items. Part.At then holds both numbers, that
// of the item and that of the part in its content. Each is one higher, so that 0 means "the
// item itself".
const itemShift = 24

// place is the Part.At of part (-1: the item itself) of an item.
func place(item, part int) int { return (item+1)<<itemShift | min(part+1, 1<<itemShift-1) }

// itemPath is the client's path for such a place.
func itemPath(at int) string {
	path := "input[" + strconv.Itoa(at>>itemShift-1) + "]"
	if part := at & (1<<itemShift - 1); part > 0 {
		path += ".content[" + strconv.Itoa(part-1) + "]"
	}
	return path
}

// clientNames are the client's names of members that encoders name otherwise.
var clientNames = map[string]string{
	"messages": "input", "reasoning_effort": "reasoning.effort", "thinking.display": "reasoning.summary",
	"response_format": "text.format", "verbosity": "text.verbosity", "logprobs": "include", "system": "instructions",
	"max_tokens": "max_output_tokens", "max_completion_tokens": "max_output_tokens",
}

// ownTail turns the end of a path within a part into the client's form.
var ownTail = strings.NewReplacer(".image_url.detail", ".detail", ".file.filename", ".filename")

func clientName(name string) string {
	name = strings.TrimPrefix(name, ownOnly)
	if own, ok := clientNames[name]; ok {
		return own
	}
	return name
}

// ClientPath implements chat.Named: messages[3].tool_calls[p].function.arguments becomes
// input[i].arguments, where p holds the number i of the item.
func (Responses) ClientPath(path string) string {
	head, rest := path, ""
	if i := strings.IndexByte(path, '['); i > 0 {
		head, rest = path[:i], path[i:]
	}
	switch {
	case rest == "":
		return clientName(path)
	case head == "system":
		return "instructions"
	case head != "messages":
		return path
	}
	for _, list := range [...]string{"].content[", "].tool_calls["} {
		_, inner, ok := strings.Cut(rest, list)
		if !ok {
			continue
		}
		digits, tail, _ := strings.Cut(inner, "]")
		if at, err := strconv.Atoi(digits); err == nil && at >= 1<<itemShift {
			return itemPath(at) + ownTail.Replace(strings.TrimPrefix(tail, ".function"))
		}
	}
	if before, ok := strings.CutSuffix(rest, ".tool_call_id"); ok {
		rest = before + ".call_id"
	}
	return "input" + rest
}
