package docs

import (
	_ "embed"
	"fmt"
	"html"
	"net/url"
	"strings"

	"gateway/functions/docs/guides"
)

// Pages are written by code of our own, because html/template would make the function half
// as large again.

//go:embed page.css
var style string

// script adds search, copy buttons and a page list that closes on small screens. Pages are
// complete without it.
//
//go:embed page.js
var script string

// hyper writes HTML. Text that is put in with text is escaped.
type hyper struct{ strings.Builder }

// put writes a format with text arguments, each escaped.
func (w *hyper) put(format string, args ...string) {
	escaped := make([]any, len(args))
	for i, a := range args {
		escaped[i] = html.EscapeString(a)
	}
	fmt.Fprintf(w, format, escaped...)
}

// render writes the page.
func (p *page) render() []byte {
	w := &hyper{}
	title := p.Title
	switch {
	case p.Family != nil:
		title = p.Family.heading() + " · " + title
	case p.Guide != nil:
		title = p.Guide.Title + " · " + title
	}
	w.put("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>%s</title>\n", title)
	w.WriteString("<style>\n" + style + "</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#content\">Skip to content</a>\n")
	w.top(p)
	w.WriteString("<div class=\"columns\">\n")
	w.navigation(p)
	w.WriteString("<main id=\"content\">\n")
	switch {
	case p.Family != nil:
		w.family(p.Family)
	case p.Guide != nil:
		w.guide(p.Guide)
	default:
		w.overview(p)
	}
	w.WriteString("</main>\n</div>\n<script>" + script + "</script>\n</body>\n</html>\n")
	return []byte(w.String())
}

// top writes the title of the site and the search form, which the script makes visible.
func (w *hyper) top(p *page) {
	w.put("<header>\n<a href=\"%sdocs\">%s</a>\n<form role=\"search\" data-base=\"%s\" hidden>\n<label for=\"search\">Search</label>\n<input id=\"search\" type=\"search\" autocomplete=\"off\" placeholder=\"Search the documentation ( / )\">\n", p.Base, p.Title, p.Base)
	w.WriteString("<div class=\"results\"><p role=\"status\"></p><ul></ul></div>\n</form>\n</header>\n")
}

// navigation lists all pages.
func (w *hyper) navigation(p *page) {
	w.WriteString("<nav aria-label=\"Pages\">\n<details open>\n<summary>Pages</summary>\n<h2>Guides</h2>\n<ul>\n")
	w.link(p.Base+"docs", "Overview", p.Guide == nil && p.Family == nil)
	for i := range p.Guides {
		g := &p.Guides[i]
		w.link(p.Base+"docs/"+guidePath+url.PathEscape(g.Name), g.Title, g == p.Guide)
	}
	w.WriteString("</ul>\n<h2>API reference</h2>\n<ul>\n")
	for _, f := range p.Families {
		w.link(p.Base+"docs/"+url.PathEscape(f.Name), f.heading(), f == p.Family)
	}
	w.link(p.Base+"openapi.json", "openapi.json", false)
	w.WriteString("</ul>\n</details>\n</nav>\n")
}

// link writes an entry of the navigation; current marks the page itself.
func (w *hyper) link(to, title string, current bool) {
	mark := ""
	if current {
		mark = ` aria-current="page"`
	}
	w.put("<li><a href=\"%s\"", to)
	w.WriteString(mark)
	w.put(">%s</a></li>\n", title)
}

// guide writes a guide with the list of its sections.
func (w *hyper) guide(g *guides.Guide) {
	w.put("<h1>%s</h1>\n", g.Title)
	var sections []guides.Section
	for _, one := range g.Sections {
		if one.Level == 2 {
			sections = append(sections, one)
		}
	}
	if len(sections) > 1 {
		w.WriteString("<nav aria-label=\"On this page\">\n<ul>\n")
		for _, one := range sections {
			w.put("<li><a href=\"#%s\">%s</a></li>\n", one.ID, one.Title)
		}
		w.WriteString("</ul>\n</nav>\n")
	}
	w.Write(g.HTML)
}

const firstRequest = `curl $GATEWAY/v1/chat/completions \
  -H "x-gateway-api-key: $KEY" -H "content-type: application/json" \
  -d '{"model":"@openai/gpt-5.4","messages":[{"role":"user","content":"Hello"}]}'`

func (w *hyper) overview(p *page) {
	w.put("<h1>%s %s</h1>\n", p.Title, p.Version)
	w.WriteString("<p>Every request carries a key, as <code>x-gateway-api-key</code> or as <code>Authorization: Bearer</code>. Models are called with a workspace key. Resources are managed with an organization key, or with a workspace key inside its workspace. All paths are below <code>/v1</code>.</p>\n")
	w.put("<pre tabindex=\"0\">%s</pre>\n<h2>Guides</h2>\n<ul>\n", firstRequest)
	for i := range p.Guides {
		w.put("<li><a href=\"%sdocs/"+guidePath+"%s\">%s</a></li>\n", p.Base, url.PathEscape(p.Guides[i].Name), p.Guides[i].Title)
	}
	w.put("</ul>\n<h2>API reference</h2>\n<p>For programs: <a href=\"%sopenapi.json\">openapi.json</a>, from which these pages are made.</p>\n", p.Base)
	for _, f := range p.Families {
		at := p.Base + "docs/" + url.PathEscape(f.Name)
		w.put("<section>\n<h3><a href=\"%s\">%s</a></h3>\n<p>%s</p>\n<div class=\"scroll\" tabindex=\"0\"><table>\n", at, f.heading(), f.Doc)
		for _, o := range f.Operations {
			w.put("<tr><td class=\"path\"><a href=\"%s#%s\">%s %s</a></td><td>%s</td></tr>\n", at, o.ID, o.Method, o.Path, o.Doc)
		}
		w.WriteString("</table></div>\n</section>\n")
	}
}

func (w *hyper) family(f *familyPage) {
	w.put("<h1>%s</h1>\n<p>%s</p>\n<ul>\n", f.heading(), f.Doc)
	for _, o := range f.Operations {
		w.put("<li><a class=\"path\" href=\"#%s\">%s %s</a> %s</li>\n", o.ID, o.Method, o.Path, o.Doc)
	}
	w.WriteString("</ul>\n")
	for i := range f.Operations {
		w.operation(&f.Operations[i])
	}
}

func (w *hyper) operation(o *operationPage) {
	w.put("<section id=\"%s\">\n<h2 class=\"path\"><span class=\"method\">%s</span> %s <a class=\"anchor\" href=\"#%s\" aria-label=\"Link to %s\">#</a></h2>\n<p>%s</p>\n<p>", o.ID, o.Method, o.Path, o.ID, o.ID, o.Doc)
	if o.Public {
		w.WriteString("No key is needed.")
	} else {
		w.WriteString("Scope: ")
		for i, s := range o.Scopes {
			if i > 0 {
				w.WriteString(" or ")
			}
			w.put("<code>%s</code>", s)
		}
	}
	w.WriteString("</p>\n")
	w.table("Parameters", o.Parameters, true)
	w.table("Body", o.Body, false)
	if o.Example != "" {
		w.put("<p>Example</p><pre tabindex=\"0\">%s</pre>\n", o.Example)
	}
	w.put("<p>Responses: %s", strings.Join(o.Statuses, ", "))
	if o.Media != "" {
		w.put(" · %s", o.Media)
	}
	w.WriteString("</p>\n")
	if o.Answer != "" {
		w.put("<pre tabindex=\"0\">%s</pre>\n", o.Answer)
	}
	w.WriteString("</section>\n")
}

// table lists parameters or fields; where adds a column with each parameter's location.
func (w *hyper) table(caption string, rows []row, where bool) {
	if len(rows) == 0 {
		return
	}
	w.put("<div class=\"scroll\" tabindex=\"0\"><table><caption>%s</caption><tr><th scope=\"col\">Name</th>", caption)
	if where {
		w.WriteString("<th scope=\"col\">In</th>")
	}
	w.WriteString("<th scope=\"col\">Type</th><th scope=\"col\">Description</th></tr>\n")
	for _, r := range rows {
		w.put("<tr><td><code>%s</code>", r.Name)
		if r.Required {
			w.WriteString(" (required)")
		}
		w.WriteString("</td>")
		if where {
			w.put("<td>%s</td>", r.In)
		}
		w.put("<td>%s</td><td>%s</td></tr>\n", r.Type, r.Doc)
	}
	w.WriteString("</table></div>\n")
}
