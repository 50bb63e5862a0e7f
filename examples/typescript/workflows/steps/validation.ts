export * from '../../steps/validation'
