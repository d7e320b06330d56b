package sshconfig

import "fmt"

// A MarksError says that the marks in the file do not enclose one block, so that it is not
// clear what is ours. The numbers are line numbers, from 1.
type MarksError struct{ Begins, Ends []int }

func (e *MarksError) Error() string {
	return fmt.Sprintf("the marks of gpg-bridge do not match: begin in lines %v, end in lines %v", e.Begins, e.Ends)
}

// Hint says what to do.
func (e *MarksError) Hint() string {
	return fmt.Sprintf("leave one line %q above one line %q, or remove both and what was between them", beginMark, endMark)
}

// A FileError says why a file was not read or not written. Nothing was changed.
type FileError struct {
	Path    string
	Problem string
	Advice  string
	Err     error // may be nil
}

func (e *FileError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("%q: %s", e.Path, e.Problem)
	}
	return fmt.Sprintf("%q: %s: %v", e.Path, e.Problem, e.Err)
}

func (e *FileError) Unwrap() error { return e.Err }

// Hint says what to do.
func (e *FileError) Hint() string { return e.Advice }
