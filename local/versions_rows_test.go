package main

import (
	"bytes"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"gateway/local/embedded"
	"gateway/shared/store"
)

// stored is all that an installation has stored, as one release wrote it.
type stored struct {
	Written      time.Time         `json:"written"`
	EventVersion byte              `json:"event_version"` // the newest that the release reads
	Event        []byte            `json:"event"`         // a usage event with every field that it knows
	Audit        json.RawMessage   `json:"audit"`         // an audit record, as it waits in its queue
	Rows         map[string][]aRow `json:"rows"`          // by table
	Blobs        map[string][]byte `json:"blobs"`         // objects by their path
	Key          string            `json:"key"`           // raw, of the workspace
	Master       string            `json:"master"`        // the key that wraps the data keys; of this fixture alone
}

// aRow is a row with its values spelled out: {"s":"text"}, {"n":1}, {"b":base64},
// {"t":true} and {"m":{...}}.
type aRow struct {
	PK      string         `json:"pk"`
	SK      string         `json:"sk"`
	Expires int64          `json:"expires,omitempty"` // seconds after Written
	Item    map[string]any `json:"item"`
}

var storedTables = []store.TableName{store.Control, store.Keys, store.Rate, store.Spend, store.Usage, store.Audit}

func spelled(v store.Value) map[string]any {
	switch v := v.(type) {
	case string:
		return map[string]any{"s": v}
	case int64:
		return map[string]any{"n": v}
	case bool:
		return map[string]any{"t": v}
	case []byte:
		if utf8.Valid(v) {
			return map[string]any{"text": string(v)}
		}
		return map[string]any{"b": base64.StdEncoding.EncodeToString(v)}
	case store.Map:
		m := map[string]any{}
		for k, e := range v {
			m[k] = spelled(e)
		}
		return map[string]any{"m": m}
	}
	panic(fmt.Sprintf("a value of type %T", v))
}

func unspelled(t *testing.T, v any) store.Value {
	t.Helper()
	for kind, of := range v.(map[string]any) {
		switch kind {
		case "s", "t":
			return of
		case "text":
			return []byte(of.(string))
		case "n":
			n, err := of.(json.Number).Int64()
			if err != nil {
				t.Fatal(err)
			}
			return n
		case "b":
			b, err := base64.StdEncoding.DecodeString(of.(string))
			if err != nil {
				t.Fatal(err)
			}
			return b
		case "m":
			m := store.Map{}
			for k, e := range of.(map[string]any) {
				m[k] = unspelled(t, e)
			}
			return m
		}
	}
	t.Fatalf("no value: %v", v)
	return nil
}

// takeStored reads what a gateway that has stopped left in its folder; the address
// of its mock provider becomes {mock}.
func takeStored(t *testing.T, dir, mock string) *stored {
	t.Helper()
	out := &stored{Written: time.Now().UTC().Truncate(time.Second), Rows: map[string][]aRow{}, Blobs: map[string][]byte{}}
	master, err := os.ReadFile(filepath.Join(dir, "master.key"))
	if err != nil {
		t.Fatal(err)
	}
	out.Master = string(master)
	s, err := embedded.Open(t.Context(), dir, embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	db, err := sql.Open("sqlite", filepath.Join(dir, "tables.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, name := range storedTables {
		rows, err := db.QueryContext(t.Context(), `SELECT pk, sk, expires FROM "`+string(name)+`" ORDER BY pk, sk`)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var pk, sk []byte
			var expires int64
			if err := rows.Scan(&pk, &sk, &expires); err != nil {
				t.Fatal(err)
			}
			item, ok, err := s.Store.Table(name).Get(t.Context(), store.RawKey(string(pk), string(sk)), true)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				continue // expired
			}
			row := aRow{PK: string(pk), SK: string(sk), Item: map[string]any{}}
			if expires > 0 {
				row.Expires = expires - out.Written.Unix()
			}
			for attr, v := range item {
				row.Item[attr] = spelled(v)
			}
			out.Rows[string(name)] = append(out.Rows[string(name)], row)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
	}
	blobs := filepath.Join(dir, "blobs")
	err = filepath.WalkDir(blobs, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := os.ReadFile(path)
		name, _ := filepath.Rel(blobs, path) // it is below
		out.Blobs[filepath.ToSlash(name)] = body
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return parseStored(t, bytes.ReplaceAll(raw, []byte(mock), []byte("{mock}")))
}

func parseStored(t *testing.T, raw []byte) *stored {
	t.Helper()
	out := &stored{}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(out); err != nil {
		t.Fatal(err)
	}
	return out
}

// putStored makes a folder of what was stored, as if it had been written just now.
func putStored(t *testing.T, raw []byte, mock string) (dir string, of *stored) {
	t.Helper()
	of = parseStored(t, bytes.ReplaceAll(raw, []byte("{mock}"), []byte(mock)))
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "master.key"), []byte(of.Master), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, body := range of.Blobs {
		path := filepath.Join(dir, "blobs", filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, body, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := embedded.Open(t.Context(), dir, embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for name, rows := range of.Rows {
		for _, r := range rows {
			row := store.Row{Key: store.RawKey(r.PK, r.SK), Item: store.Item{}}
			if r.Expires != 0 {
				row.Expires = time.Now().Add(time.Duration(r.Expires) * time.Second)
			}
			for attr, v := range r.Item {
				row.Item[attr] = unspelled(t, v)
			}
			if err := s.Store.Table(store.TableName(name)).Put(t.Context(), row); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir, of
}

// word matches what is the same in the keys of all rows of a kind, and in the names
// of members; the rest are ids, slugs, hours and hashes.
var word = regexp.MustCompile(`^([A-Z][A-Z-]{1,18}|[a-z_]{1,32})$`)

// kindOf is a row's kind by its table and the words of its keys.
func kindOf(table string, r aRow) string {
	words := func(key string) string {
		parts := strings.Split(key, "#")
		for i, p := range parts {
			if !word.MatchString(p) || p == "default" {
				parts[i] = "*"
			}
		}
		return strings.Join(parts, "#")
	}
	return table + " " + words(r.PK) + " / " + words(r.SK)
}

// shapes are the attributes and members that rows have, with their types, by kind:
// those that every row of the kind has.
func (s *stored) shapes() map[string][]string {
	out := map[string][]string{}
	for table, rows := range s.Rows {
		for _, r := range rows {
			found := map[string]bool{}
			for attr, v := range r.Item {
				shapeOf(found, attr, v.(map[string]any))
			}
			kind := kindOf(table, r)
			list := slices.Sorted(maps.Keys(found))
			if before, ok := out[kind]; ok {
				list = slices.DeleteFunc(list, func(m string) bool { return !slices.Contains(before, m) })
			}
			out[kind] = list
		}
	}
	return out
}

// missing are what rows had and have no more: a kind, an attribute or a member, or
// its type.
func missing(before, now map[string][]string) (out []string) {
	for kind, members := range before {
		got, ok := now[kind]
		if !ok {
			out = append(out, kind)
		}
		for _, m := range members {
			if ok && !slices.Contains(got, m) {
				out = append(out, kind+": "+m)
			}
		}
	}
	slices.Sort(out)
	return out
}

// TestChangesOfRowsAreSeen: what takes away or changes is, what adds is not.
func TestChangesOfRowsAreSeen(t *testing.T) {
	t.Parallel()
	one := func(item map[string]any) map[string][]string {
		s := stored{Rows: map[string][]aRow{"control": {{PK: "ORG#default#WS#0a1b", SK: "CONFIG#0a1b", Item: item}}}}
		return s.shapes()
	}
	item := func(change func(map[string]any)) map[string]any {
		it := map[string]any{
			"body": map[string]any{"text": `{"name":"a","limits":[{"value":1}],"off":false}`}, "rev": map[string]any{"n": json.Number("1")},
			"open": map[string]any{"m": map[string]any{"max": map[string]any{"n": json.Number("1")}}},
		}
		change(it)
		return it
	}
	before := one(item(func(map[string]any) {}))
	for name, c := range map[string]struct {
		change func(map[string]any)
		want   string
	}{
		"nothing":           {func(map[string]any) {}, ""},
		"an attribute more": {func(it map[string]any) { it["more"] = map[string]any{"s": "x"} }, ""},
		"a member more": {func(it map[string]any) {
			it["body"] = map[string]any{"text": `{"name":"a","limits":[{"value":1,"unit":"x"}],"off":true,"more":1}`}
		}, ""},
		"another value":      {func(it map[string]any) { it["rev"] = map[string]any{"n": json.Number("7")} }, ""},
		"an attribute less":  {func(it map[string]any) { delete(it, "rev") }, ": rev n"},
		"another type":       {func(it map[string]any) { it["rev"] = map[string]any{"s": "1"} }, ": rev n"},
		"a key of a map":     {func(it map[string]any) { it["open"] = map[string]any{"m": map[string]any{}} }, ": open.max n"},
		"text becomes bytes": {func(it map[string]any) { it["body"] = map[string]any{"b": "AA=="} }, ": body object"},
		"a member less": {func(it map[string]any) {
			it["body"] = map[string]any{"text": `{"name":"a","limits":[{}],"off":false}`}
		}, ": body.limits[].value float64"},
		"a member's type": {func(it map[string]any) {
			it["body"] = map[string]any{"text": `{"name":"a","limits":[{"value":1}],"off":"no"}`}
		}, ": body.off bool"},
	} {
		got := strings.Join(missing(before, one(item(c.change))), "\n")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := missing(before, nil); len(got) != 1 {
		t.Errorf("a kind less: %q", got)
	}
}

func shapeOf(to map[string]bool, path string, v map[string]any) {
	for kind, of := range v {
		switch kind {
		case "m":
			to[path+" map"] = true
			for k, e := range of.(map[string]any) {
				if word.MatchString(k) {
					shapeOf(to, path+"."+k, e.(map[string]any))
				}
			}
		case "s", "text":
			var inner any
			text := of.(string)
			if strings.HasPrefix(text, "{") && json.Unmarshal([]byte(text), &inner) == nil {
				membersOf(to, path, inner)
				continue
			}
			to[path+" "+kind] = true
		default:
			to[path+" "+kind] = true
		}
	}
}

// membersOf adds the members of a JSON value.
func membersOf(to map[string]bool, path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		to[path+" object"] = true
		for name, e := range v {
			if word.MatchString(name) {
				membersOf(to, path+"."+name, e)
			}
		}
	case []any:
		to[path+" list"] = true
		if len(v) > 0 {
			membersOf(to, path+"[]", v[0])
		}
	default:
		to[fmt.Sprintf("%s %T", path, v)] = true
	}
}
