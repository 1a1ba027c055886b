package reference

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"gateway/shared/wire"
)

// Hosted is a tool that the provider runs itself: what the tool finds is added to the input of
// the model, so that the size of the request contains nothing about the number of its tokens.
type Hosted struct {
	Field string // path of the tool, such as tools[0]
	Label string // server_label of a tool server
	// Uses and Tokens are how often the tool may be used and what each use may add, if the
	// request states both; else 0.
	Uses, Tokens int64
}

// hostedTypes begin the canonical types of tools that providers run. Types may have dates
// after them, and the name of a host and a colon before them.
var hostedTypes = []string{
	"mcp", "connector", "websearch", "webfetch", "xsearch", "filesearch", "collectionssearch", "codeinterpreter", "codeexecution",
	"browsersearch", "browserautomation", "googlesearch", "googlemaps", "urlcontext", "enterprisewebsearch", "retrieval", "documentlibrary",
}

// hostedKeys are the canonical keys by which Google's and Amazon's tools specify what they are.
var hostedKeys = map[string]bool{
	"googlesearch": true, "googlesearchretrieval": true, "googlemaps": true, "urlcontext": true, "codeexecution": true, "enterprisewebsearch": true,
	"filesearch": true, "retrieval": true, "mcpservers": true, "systemtool": true,
}

// around are the canonical keys of objects, or lists of them, that hold requests or their tools.
var around = map[string]bool{"toolconfig": true, "requests": true, "request": true, "params": true, "session": true, "response": true}

// hostedFields are the canonical keys of requests that are hosted tools themselves.
var hostedFields = []string{"mcpservers", "websearchoptions", "searchparameters", "enablesearch"}

// FindHosted returns the tools of a JSON body that the provider runs. What precedes an error
// counts.
func FindHosted(body []byte) []Hosted {
	if mentioned(body, Tools)&Tools == 0 {
		return nil
	}
	h := hostFinder{d: wire.NewDecoder(body)}
	h.holder("", 0)
	return h.found
}

type hostFinder struct {
	d     *wire.Decoder
	found []Hosted
}

// holder reads an object that may have tools, or a list of such objects.
func (h *hostFinder) holder(path string, depth int) {
	switch kind := h.d.Kind(); {
	case kind == wire.KindArray && depth < 8:
		for i := range h.d.Array {
			h.holder(path+"["+strconv.Itoa(i)+"]", depth+1)
		}
		return
	case kind != wire.KindObject || depth >= 8:
		h.d.Skip()
		return
	}
	for key := range h.d.Object {
		name := string(key)
		at := name
		if path != "" {
			at = path + "." + name
		}
		switch c := canonical(name); {
		case c == "tools" && h.d.Kind() == wire.KindArray:
			for i := range h.d.Array {
				h.tool(at + "[" + strconv.Itoa(i) + "]")
			}
		case c == "plugins" && h.d.Kind() == wire.KindArray: // OpenRouter's
			for i := range h.d.Array {
				h.plugin(at + "[" + strconv.Itoa(i) + "]")
			}
		case slices.Contains(hostedFields, c):
			if raw := h.d.Raw(); !emptyValue(raw) && string(raw) != `{"mode":"off"}` {
				h.found = append(h.found, Hosted{Field: at})
			}
		case around[c]:
			h.holder(at, depth+1)
		default:
			h.d.Skip()
		}
	}
}

// emptyValue reports whether a value requests nothing. An empty object requests the
// defaults.
func emptyValue(raw []byte) bool {
	s := strings.Join(strings.Fields(string(raw[:min(len(raw), 8)])), "")
	return s == "null" || s == "false" || s == "[]" || s == ""
}

// tool reads one tool.
func (h *hostFinder) tool(at string) {
	if h.d.Kind() != wire.KindObject {
		h.d.Skip()
		return
	}
	t, hosted := Hosted{Field: at}, false
	for key := range h.d.Object {
		switch c := canonical(string(key)); {
		case c == "type" && h.d.Kind() == wire.KindString:
			hosted = isHostedType(h.d.Str()) || hosted
		case c == "serverlabel" && h.d.Kind() == wire.KindString:
			t.Label = h.d.Str()
		case c == "maxuses":
			t.Uses = count(h.d)
		case c == "maxcontenttokens":
			t.Tokens = count(h.d)
		case c == "environment": // of a shell
			hosted = bytes.Contains(h.d.Raw(), []byte("container")) || hosted
		case hostedKeys[c]:
			hosted = !emptyValue(h.d.Raw()) || hosted
		default:
			h.d.Skip()
		}
	}
	if t.Uses == 0 || t.Tokens == 0 {
		t.Uses, t.Tokens = 0, 0
	}
	if hosted {
		h.found = append(h.found, t)
	}
}

// plugin reads a plugin, which may be a search of the web.
func (h *hostFinder) plugin(at string) {
	if h.d.Kind() != wire.KindObject {
		h.d.Skip()
		return
	}
	for key := range h.d.Object {
		if canonical(string(key)) == "id" && h.d.Kind() == wire.KindString && h.d.Str() == "web" {
			h.found = append(h.found, Hosted{Field: at})
		}
	}
}

func isHostedType(name string) bool {
	name = canonical(name)
	if i := strings.LastIndexByte(name, ':'); i >= 0 {
		name = name[i+1:]
	}
	for _, prefix := range hostedTypes {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// count reads a number that bounds something; 0 if it is none.
func count(d *wire.Decoder) int64 {
	n, err := wire.ScanInt(d.Raw(), "")
	if err != nil || n < 0 || n > 1<<40 {
		return 0
	}
	return n
}
