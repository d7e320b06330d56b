package private

// CheckPlace has nothing to check: fs.FileMode does not show access lists.
func CheckPlace(string) error { return nil }
