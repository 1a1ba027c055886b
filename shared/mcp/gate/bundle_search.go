package gate

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"gateway/shared/mcp"
	"gateway/shared/mcp/protocolversion"
)

// Bounds of a search.
const (
	maxQuery     = 1000 // characters
	maxFound     = 50
	defaultFound = 10
)

// searchTool is the tool by which others are found.
var searchTool = json.RawMessage(`{"name":"` + mcp.SearchTool + `","title":"Search tools","description":"Finds tools of this server by words of their names and descriptions. The result has whole definitions of tools, which can be called at once by their names, also where tools/list does not show them.",` +
	`"inputSchema":{"type":"object","properties":{"query":{"type":"string","minLength":1,"maxLength":1000,"description":"Words of what the tool should do."},"limit":{"type":"integer","minimum":1,"maximum":50,"default":10,"description":"How many tools at most."}},"required":["query"]},` +
	`"outputSchema":{"type":"object","properties":{"tools":{"type":"array","items":{"type":"object"},"description":"Definitions as tools/list shows them, the best first."}},"required":["tools"]},"annotations":{"readOnlyHint":true,"openWorldHint":false}}`)

// search answers with the definitions of tools that fit a query. It counts as a call of a
// tool of the virtual server.
func (b *bundle) search() error {
	query, limit, bad := searched(b.visit.req.Members["arguments"])
	if bad != "" {
		text, _ := json.Marshal(bad) // a text
		sendResult(b.visit, b.complete(`{"content":[{"type":"text","text":`+string(text)+`}],"isError":true`))
		return nil
	}
	if err := b.visit.call.Count(b.visit.facts.Server.Record.Slug, mcp.SearchTool); err != nil {
		return err
	}
	all, gaps := b.tools()
	found := ranked(all, query)
	found = found[:min(len(found), limit)]
	raws := make([]json.RawMessage, len(found))
	for i := range found {
		raws[i] = found[i].raw
	}
	structured, err := json.Marshal(map[string]any{"tools": raws})
	if err != nil {
		return err
	}
	text, _ := json.Marshal(string(structured)) // a text
	out := `{"content":[{"type":"text","text":` + string(text) + `}],"structuredContent":` + string(structured)
	if len(gaps) > 0 {
		raw, err := json.Marshal(map[string][]gap{metaMissing: gaps})
		if err != nil {
			return err
		}
		out += `,"_meta":` + string(raw)
	}
	b.keep(found)
	return b.fits(b.complete(out))
}

// complete ends a result, in the client's era.
func (b *bundle) complete(result string) []byte {
	if b.visit.req.Era == protocolversion.Stateless {
		result += `,"resultType":"complete"`
	}
	return []byte(result + "}")
}

// searched reads the arguments of a search; bad says what is wrong with them.
func searched(raw json.RawMessage) (query string, limit int, bad string) {
	var args map[string]json.RawMessage
	if json.Unmarshal(raw, &args) != nil || json.Unmarshal(args["query"], &query) != nil || len(words(query)) == 0 || utf8.RuneCountInString(query) > maxQuery {
		return "", 0, fmt.Sprintf("query must be a text of 1 to %d characters with words in it", maxQuery)
	}
	if limit = defaultFound; args["limit"] != nil && string(args["limit"]) != "null" && (json.Unmarshal(args["limit"], &limit) != nil || limit < 1 || limit > maxFound) {
		return "", 0, fmt.Sprintf("limit must be a whole number from 1 to %d", maxFound)
	}
	return query, limit, ""
}

// words are those of a text, in small letters.
func words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// ranked are the tools that have words of a query, the best first; of equals the one that
// is listed first.
func ranked(all []offer, query string) []offer {
	asked := words(query)
	slices.Sort(asked)
	asked = slices.Compact(asked)
	type scored struct {
		offer
		score int
	}
	var found []scored
	for _, o := range all {
		if n := score(&o, asked); n > 0 {
			found = append(found, scored{o, n})
		}
	}
	sort.SliceStable(found, func(i, j int) bool { return found[i].score > found[j].score })
	out := make([]offer, len(found))
	for i := range found {
		out[i] = found[i].offer
	}
	return out
}

// score weighs a tool: words of its name count most, and whole words more than parts.
func score(o *offer, asked []string) (n int) {
	var shape struct{ Title, Description string }
	_ = json.Unmarshal(o.raw, &shape) // another form says nothing
	for _, in := range []struct {
		text        string
		whole, part int
	}{{o.name, 8, 4}, {shape.Title, 4, 2}, {shape.Description, 2, 1}} {
		all := words(in.text)
		for _, w := range asked {
			switch {
			case slices.Contains(all, w):
				n += in.whole
			case strings.Contains(strings.ToLower(in.text), w):
				n += in.part
			}
		}
	}
	return n
}
