// Package prompt is saved prompts: their stored forms with their bounds, the
// template language, and how versions are named. It compiles a version once, to
// something that renders without reading a template again; the loader cache of
// package resource keeps it:
//
//	resource.LoadVersion(ctx, view, scope, prompt.KindPrompt, id, n, prompt.DecodePrompt)
//
// The language is Mustache, as mustache.js has it, without escaping for HTML and
// without other delimiters, and with two kinds of partials: {{>slug}} is a saved
// one, optionally of a version ({{>slug@5}}, {{>slug@latest}}), {{>>name}} one
// that the caller brings as a variable. Rendering is bounded in output and depth.
//
// What must never come in: HTTP, calls of models, and looking up of records,
// which callers do and give as functions.
package prompt
