// Package document reads YAML and JSON files as trees in which every value has its place in
// the file, and writes YAML. It reads files that others wrote: size, depth, and the
// expansion of aliases are limited, and includes stay inside one folder. It must not learn
// what the files mean.
package document
