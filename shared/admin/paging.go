package admin

import (
	"gateway/shared/fault"
)

// Paging is how a family cuts its lists into pages.
type Paging struct {
	Page, Size  string // names of the parameters; default current_page and page_size
	First       int64  // number of the first page
	DefaultSize int64  // default 100, for clients that read one page
	MinSize     int64  // default 1
	MaxSize     int64  // default 1000
	// CamelToo also takes the parameters in camel case, currentPage and
	// pageSize; they are the documented ones.
	CamelToo bool
}

// Page is one page of a list.
type Page struct {
	Number, Size int64 // as the caller counts
	start        int64 // entries before it
}

// maxPage prevents page times size from overflowing.
const maxPage = 1_000_000

func (p Paging) filled() Paging {
	if p.Page == "" {
		p.Page, p.Size = "current_page", "page_size"
	}
	if p.DefaultSize == 0 {
		p.DefaultSize = 100
	}
	if p.MinSize == 0 {
		p.MinSize = 1
	}
	if p.MaxSize == 0 {
		p.MaxSize = 1000
	}
	return p
}

// Fields are the query parameters of the paging.
func (p Paging) Fields() []Field {
	p = p.filled()
	page := Field{Name: p.Page, Type: Integer, Min: p.First, Max: maxPage, Default: p.First, Doc: "Number of the page."}
	size := Field{Name: p.Size, Type: Integer, Min: p.MinSize, Max: p.MaxSize, Default: p.DefaultSize, Doc: "Entries per page."}
	fields := []Field{page, size}
	if p.CamelToo {
		page.Name, size.Name = "currentPage", "pageSize"
		fields = append([]Field{page, size}, fields...)
	}
	return fields
}

// Of reads the page that a query requests.
func (p Paging) Of(q Values) (Page, error) {
	p = p.filled()
	out := Page{Number: p.First, Size: p.DefaultSize}
	names := [][2]string{{p.Page, p.Size}}
	if p.CamelToo {
		names = append(names, [2]string{"currentPage", "pageSize"})
	}
	for _, n := range names {
		if q.Given(n[0]) {
			out.Number = q.Int(n[0])
		}
		if q.Given(n[1]) {
			out.Size = q.Int(n[1])
		}
	}
	if p.CamelToo && q.Given("currentPage") && q.Given(p.Page) && q.Int("currentPage") != q.Int(p.Page) {
		return Page{}, fault.Invalid("currentPage", "differs from %s", p.Page)
	}
	out.start = (out.Number - p.First) * out.Size
	return out, nil
}

// Cut gives the part of all that is on the page.
func Cut[T any](all []T, p Page) []T {
	n := int64(len(all))
	from := min(p.start, n)
	return all[from:min(from+p.Size, n)]
}

// Envelope is the form that a family's lists have: how a page of entries is put
// into it, and its schema. total counts all entries of the list.
type Envelope struct {
	Wrap   func(entries []any, total int, p Page) any
	Schema func(entry Schema) Schema
}

// The forms of lists.
var (
	// ListEnvelope is {"object":"list","total","data"}.
	ListEnvelope = Envelope{
		func(e []any, total int, _ Page) any { return Members{"object": "list", "total": total, "data": e} },
		func(entry Schema) Schema {
			return Closed(map[string]Schema{"object": listOf("list"), "total": integerSchema, "data": anyListSchema(entry)})
		},
	}
	// TotalEnvelope is {"total","data"}.
	TotalEnvelope = Envelope{
		func(e []any, total int, _ Page) any { return Members{"total": total, "data": e} },
		func(entry Schema) Schema {
			return Closed(map[string]Schema{"total": integerSchema, "data": anyListSchema(entry)})
		},
	}
	// SuccessEnvelope is {"success":true,"data","total"}.
	SuccessEnvelope = Envelope{
		func(e []any, total int, _ Page) any { return Members{"success": true, "data": e, "total": total} },
		func(entry Schema) Schema {
			return Closed(map[string]Schema{"success": {"type": "boolean"}, "data": anyListSchema(entry), "total": integerSchema})
		},
	}
	// MoreEnvelope is {"data","total","has_more"}.
	MoreEnvelope = Envelope{
		func(e []any, total int, p Page) any {
			return Members{"data": e, "total": total, "has_more": p.start+int64(len(e)) < int64(total)}
		},
		func(entry Schema) Schema {
			return Closed(map[string]Schema{"data": anyListSchema(entry), "total": integerSchema, "has_more": {"type": "boolean"}})
		},
	}
)
