package wire

// SetTOS does nothing: Windows leaves such marks to its administrator.
func (w *Conn) SetTOS(int) error { return nil }
