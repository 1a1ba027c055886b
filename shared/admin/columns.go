package admin

// NameField, SlugField and TagsField are the columns that most resources have.
func NameField(most int64) Field {
	return Field{Name: "name", Type: String, Required: true, Min: 1, Max: most, Column: true}
}

// SlugField is a slug that the creator may choose.
func SlugField(most int64) Field {
	return Field{Name: "slug", Doc: "Default: generated from the name.", Type: String, Min: 1, Max: most, Pattern: SlugPattern, Column: true, CreateOnly: true}
}

// TagsField are the tags.
func TagsField() Field {
	return Field{Name: "tags", Type: Map, Of: &Field{Type: String, Max: maxTagValue}, Max: maxTags, Column: true}
}

// Bounds of tags.
const (
	maxTags     = 50
	maxTagValue = 255
)
