// Package guides contains the user guides as Markdown files and renders them as HTML for the
// documentation pages. A guide is one file with one H1. Links to other guides are file names,
// so that they work in the repository, too.
package guides

import (
	"bytes"
	"embed"
	"fmt"
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

//go:embed *.md
var files embed.FS

// order lists the guides as readers need them.
var order = []string{
	"quickstart", "concepts", "requests", "routing", "guardrails", "prompts", "budgets", "observe", "console", "manage", "saml",
	"mcp", "tools", "agents", "deploy", "operate", "runbook", "simulation", "athena", "migrate", "reference",
}

// Guide is a rendered guide.
type Guide struct {
	Name     string // file name without extension
	Title    string // its H1
	Sections []Section
	HTML     []byte // without the H1
}

// Section is an H2 of a guide.
type Section struct{ ID, Title string }

// All returns the guides in reading order. The result must not be changed.
var All = sync.OnceValues(func() ([]Guide, error) {
	out := make([]Guide, 0, len(order))
	for _, name := range order {
		source, err := files.ReadFile(name + ".md")
		if err != nil {
			return nil, fmt.Errorf("guides: %w", err)
		}
		g, err := render(name, source)
		if err != nil {
			return nil, fmt.Errorf("guides: %s: %w", name, err)
		}
		out = append(out, g)
	}
	return out, nil
})

// markdown renders tables, fenced code and headings with ids, and drops raw HTML.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.Table),
	goldmark.WithParserOptions(parser.WithAutoHeadingID(), parser.WithASTTransformers(util.Prioritized(links{}, 0))),
)

func render(name string, source []byte) (Guide, error) {
	g := Guide{Name: name}
	doc := markdown.Parser().Parse(text.NewReader(source))
	for node := doc.FirstChild(); node != nil; {
		next := node.NextSibling()
		if h, ok := node.(*ast.Heading); ok {
			switch {
			case h.Level == 1 && g.Title != "":
				return g, fmt.Errorf("a second H1: %s", plain(h, source))
			case h.Level == 1:
				g.Title = plain(h, source)
				doc.RemoveChild(doc, h)
			case h.Level == 2:
				id, _ := h.AttributeString("id")
				g.Sections = append(g.Sections, Section{string(id.([]byte)), plain(h, source)})
			}
		}
		node = next
	}
	if g.Title == "" {
		return g, fmt.Errorf("no H1")
	}
	var b bytes.Buffer
	if err := markdown.Renderer().Render(&b, source, doc); err != nil {
		return g, err
	}
	g.HTML = b.Bytes()
	return g, nil
}

// plain returns the text of a node.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, ok := n.(*ast.Text); ok && entering {
			b.Write(t.Segment.Value(source))
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// links turns links to files of guides into links to their pages, and links to other files of
// the repository, which are not served, into text.
type links struct{}

// Transform implements parser.ASTTransformer.
func (links) Transform(doc *ast.Document, _ text.Reader, _ parser.Context) {
	var unserved []*ast.Link
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		link, ok := n.(*ast.Link)
		if !ok || !entering {
			return ast.WalkContinue, nil
		}
		to := string(link.Destination)
		switch file, fragment, anchored := strings.Cut(to, "#"); {
		case strings.HasPrefix(to, "https://"), file == "":
		case !strings.Contains(file, "/") && strings.HasSuffix(file, ".md"):
			to = strings.TrimSuffix(file, ".md")
			if anchored {
				to += "#" + fragment
			}
			link.Destination = []byte(to)
		default:
			unserved = append(unserved, link)
		}
		return ast.WalkContinue, nil
	})
	for _, link := range unserved {
		parent := link.Parent()
		for child := link.FirstChild(); child != nil; {
			next := child.NextSibling()
			parent.InsertBefore(parent, link, child)
			child = next
		}
		parent.RemoveChild(parent, link)
	}
}
