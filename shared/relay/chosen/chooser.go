package chosen

// Chooser makes a leaf of the plan into a target.
type Chooser struct {
	Target *Target
	Wall   *Wall
}
